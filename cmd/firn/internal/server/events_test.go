package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/server"
)

// A stream is an answer to GET /v1/events.
type stream struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Scanner
}

// events asks for a stream, with headers given as name and value.
func events(t *testing.T, v *serving, query string, header ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.addr+"/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := fresh(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return &stream{t, answer, bufio.NewScanner(answer.Body)}
}

// next returns the next event; "" at the end.
func (s *stream) next() (name string, data []byte) {
	s.t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			name = line[7:]
		case strings.HasPrefix(line, "data: "):
			data = []byte(line[6:])
		case line == "":
			return name, data
		}
	}
	return "", nil
}

func (s *stream) state() (v issuing.View) {
	s.t.Helper()
	if s.answer.StatusCode != http.StatusOK {
		s.t.Fatal(s.answer.Status)
	}
	name, data := s.next()
	if name != "state" {
		s.t.Fatalf("event %q %s, want state", name, data)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// names are the namespaces of a view.
func names(v issuing.View) string {
	var all []string
	for _, ns := range v.Namespaces {
		all = append(all, ns.Namespace)
	}
	return strings.Join(all, " ")
}

const ofShop = "tokens:\n  - {name: boss, sha256: "
const forBoss = ", admin: true, namespaces: ['*']}\n"

func TestAStreamSendsWhatItsCallerMaySee(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("1:000102030405060708090a0b0c0d0e0f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := serve(t, "namespaces: {orders: {}, users: {kind: segment}, veiled: {kind: segment, veil: {key_file: "+key+"}}}\nanonymous: [users, veiled]\n"+
		ofShop+access.Hash("boss")+forBoss+"  - {name: shop, sha256: "+access.Hash("shop")+", namespaces: [orders]}\n")
	if status, body, err := try(t, fresh(t), "http://"+v.addr+"/v1/ids/orders?count=7", "boss"); status != 200 {
		t.Fatal(status, body, err)
	}
	try(t, fresh(t), "http://"+v.addr+"/v1/ids/orders?count=0", "boss")

	boss := events(t, v, "", "Authorization", "Bearer boss")
	state := boss.state()
	if got := names(state); got != "orders users veiled" || !state.Ready || !state.Admin || !state.Counts || state.Caller != "boss" {
		t.Errorf("boss sees %q of %+v", got, state)
	}
	if orders := state.Namespaces[0]; orders.Issued != 7 || orders.Counts["ok"] != 1 || orders.Counts["bad_count"] != 1 || !orders.Able || orders.LeaseState == nil {
		t.Errorf("boss sees %+v", orders)
	}
	try(t, fresh(t), "http://"+v.addr+"/v1/ids/orders?count=3", "boss")
	if later := boss.state(); later.Namespaces[0].Issued != 10 || !later.Counted.After(state.Counted) {
		t.Errorf("a second later boss sees %+v, was %+v", later, state)
	}
	if got := events(t, v, "?namespace=users&namespace=nothing", "Authorization", "Bearer boss").state(); names(got) != "users" || got.More != 0 {
		t.Errorf("of users and nothing: %+v", got)
	}

	shop := events(t, v, "", "Authorization", "Bearer shop").state()
	if names(shop) != "orders users veiled" || shop.Admin || shop.Counts || shop.Namespaces[0].Issued != 0 || shop.Namespaces[0].Counts != nil || shop.Refused != nil {
		t.Errorf("shop sees %+v", shop)
	}
	all := events(t, v, "").state()
	if names(all) != "users veiled" || all.Counts || all.Namespaces[0].Segment == nil || all.Namespaces[1].Segment != nil {
		t.Errorf("a caller without a token sees %+v", all)
	}
}

func TestAStreamIsRefusedAsOtherRequestsAre(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\nlimits: {share: 1}\n"+ofShop+access.Hash("boss")+forBoss)
	for what, c := range map[string]struct {
		query  string
		header []string
		status int
	}{
		"no token":            {"", nil, 401},
		"a wrong token":       {"", []string{"Authorization", "Bearer wrong"}, 401},
		"another page":        {"", []string{"Sec-Fetch-Site", "cross-site"}, 401},
		"an unknown name":     {"?pool=x", []string{"Authorization", "Bearer boss"}, 400},
		"too many namespaces": {"?" + strings.Repeat("namespace=orders&", issuing.MaxViewed+1), []string{"Authorization", "Bearer boss"}, 400},
	} {
		if got := events(t, v, c.query, c.header...).answer.StatusCode; got != c.status {
			t.Errorf("%s: %d, want %d", what, got, c.status)
		}
	}
	for range 10 { // 1 % of 1,000 watches
		events(t, v, "", "Authorization", "Bearer boss").state()
	}
	if got := events(t, v, "", "Authorization", "Bearer boss").answer; got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %d", got.StatusCode)
	}
}

func TestAStreamEndsWhenItsTokenIsRevoked(t *testing.T) {
	text := "namespaces: {orders: {}}\n" + ofShop + access.Hash("boss") + forBoss
	v := serve(t, text)
	s := events(t, v, "", "Authorization", "Bearer boss")
	s.state()
	v.once(func() { write(t, v.file, strings.Replace(text, access.Hash("boss"), access.Hash("other"), 1)) })
	v.turn()
	for {
		name, data := s.next()
		if name == "state" { // one may be under way
			continue
		}
		if name != "error" || !strings.Contains(string(data), `"code":"unauthorized"`) {
			t.Errorf("%s %s", name, data)
		}
		break
	}
	if name, data := s.next(); name != "" {
		t.Errorf("%s %s after the error", name, data)
	}
}

func TestAStreamOutlivesTheReadTimeoutAndEndsWithTheServer(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n", func(s *server.Server) { s.SetTimeouts(time.Second/2, time.Second/2, time.Second, time.Second) })
	s := events(t, v, "")
	for range 4 {
		s.state()
	}
	start := time.Now()
	v.stop()
	if took := time.Since(start); took > 4*time.Second { // requests in flight are cut off after 7
		t.Errorf("the shutdown waited %v for the stream", took)
	}
	for {
		if name, _ := s.next(); name == "" {
			return
		}
	}
}

func TestTheAddressIsAPageForBrowsersOnly(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n"+ofShop+access.Hash("boss")+forBoss)
	for accept, want := range map[string]string{"text/html,*/*;q=0.8": "<!doctype html>", "*/*": "Firn issues unique ids."} {
		a := does(t, fresh(t), http.MethodGet, "http://"+v.addr+"/", "Accept", accept)
		if !strings.HasPrefix(a.body, want) || a.status != http.StatusOK {
			t.Errorf("Accept %s: %d %.40q", accept, a.status, a.body)
		}
	}
	if status, body, _ := try(t, fresh(t), "http://"+v.addr+"/console/x/nothing", ""); status != 404 || !strings.Contains(body, "not_found") {
		t.Errorf("%d %s", status, body)
	}
}
