package server_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// hanging serves a sequence over a store that hangs until the gate is closed.
func hanging(t *testing.T) (url string, gate chan struct{}) {
	t.Helper()
	cfg, err := settings.Parse("firn.yaml", []byte("namespaces: {txn: {kind: sequence}}"))
	if err != nil {
		t.Fatal(err)
	}
	gate = make(chan struct{})
	_, on := newServerOver(t, &slowStore{Store: memstore.New(nil), gate: gate}, cfg)
	return on.URL, gate
}

func TestARequestFailsWithinTheTimeoutOfItsClient(t *testing.T) {
	url, gate := hanging(t)
	for timeout, want := range map[string]int{"50": 503, "0": 400, "soon": 400, "86400001": 400} {
		begun := time.Now()
		a := does(t, fresh(t), http.MethodPost, url+"/v1/ids/txn", "Firn-Timeout-Ms", timeout)
		if says := strings.Contains(a.body, `"canceled"`) && strings.Contains(a.body, "Firn-Timeout-Ms"); want == 503 && !says {
			t.Errorf("%s: %s", timeout, a.body)
		}
		if took := time.Since(begun); a.status != want || took > 5*time.Second {
			t.Errorf("%s: %d after %v, want %d", timeout, a.status, took, want)
		}
	}
	close(gate)
	_, counts := get(t, fresh(t), url+"/metrics", "")
	if !strings.Contains(counts, `firn_requests_total{code="canceled",namespace="txn",protocol="http"} 1`) || strings.Contains(counts, "timed_out") {
		t.Errorf("the time-out of a caller is not counted as the caller's:\n%s", counts)
	}
}

func TestAClientDoesNotLeaveAServerWhoseStoreHangs(t *testing.T) {
	url, gate := hanging(t)
	c, err := client.New(client.Config{Servers: []string{url}, Timeout: 2 * time.Second, Wait: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ids, err := c.IDs("txn")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ids.Fetch(t.Context(), 1); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("while the store hangs: %v", err)
	}
	if state := c.State().Servers[0]; !state.Up {
		t.Errorf("the client left the server: %+v", state)
	}
	close(gate)
	if _, err := ids.Fetch(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
