package respapi

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// requests returns the counts of requests by namespace and code.
func requests(t *testing.T, from *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		if family.GetName() != "firn_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if n := int(m.GetCounter().GetValue()); n > 0 {
				counts[labels["namespace"]+" "+labels["code"]] += n
			}
		}
	}
	return counts
}

// Commands that came together are answered together, but each is counted, and a denial of all
// is one record of the audit log.
func TestEveryCommandIsCountedOnce(t *testing.T) {
	const incr = "*2\r\n$4\r\nINCR\r\n$5\r\n%s\r\n"
	times := func(n int, command string) string { return strings.Repeat(command, n) }
	for _, c := range []struct {
		in     string
		want   map[string]int
		denied int
	}{
		{times(3, fmt.Sprintf(incr, "items")), map[string]int{"items ok": 3}, 0},
		{times(7, fmt.Sprintf(incr, "items")), map[string]int{"items ok": 7}, 0}, // more than limits.batch
		{times(3, fmt.Sprintf(incr, "other")), map[string]int{" unknown_namespace": 3}, 0},
		{times(3, fmt.Sprintf(incr, "cards")), map[string]int{" not_a_number": 3}, 0},
		{times(3, fmt.Sprintf(incr, "slow_")), map[string]int{"slow_ ok": 1, "slow_ rate_limited": 2}, 0},
		{times(2, times(3, fmt.Sprintf(incr, "slow_"))+"PING\r\n"), map[string]int{"slow_ ok": 1, "slow_ rate_limited": 5}, 0},
		{times(3, fmt.Sprintf(incr, "users")), map[string]int{" unauthorized": 3}, 1},
		{times(3, "INCR users\r\n"), map[string]int{" unauthorized": 3}, 1},
		{"INCRBY items 3\r\nINCRBY cards 3\r\nINCRBY items 6\r\n", map[string]int{"items ok": 1, "cards not_consecutive": 1, "items batch_too_large": 1}, 0},
		{"FIRN.NEXT cards COUNT 3\r\nFIRN.NEXT cards COUNT 0\r\n", map[string]int{"cards ok": 1, "cards bad_count": 1}, 0},
		{"NOSUCH\r\nINCR\r\n*1\r\n$x\r\n", map[string]int{" bad_request": 3}, 0},
		{"MULTI\r\n" + times(2, "INCR items\r\n") + "EXEC\r\n", map[string]int{"items ok": 2}, 0},
		{"MULTI\r\n" + times(2, fmt.Sprintf(incr, "other")) + "EXEC\r\n", map[string]int{" unknown_namespace": 2}, 0},
		{"AUTH wrong\r\n" + fmt.Sprintf(incr, "items"), map[string]int{" unauthorized": 1, "items ok": 1}, 1},
	} {
		registry := prometheus.NewRegistry()
		var out strings.Builder
		still := func() time.Duration { return 0 }
		service, err := issuing.Open(context.Background(), issuing.Config{
			Settings: settings.Config{
				Anonymous: []string{"items", "other", "cards", "slow_"}, Tokens: []settings.Token{{Name: "shop", SHA256: access.Hash("s"), Namespaces: []string{"users"}}},
				Limits:     settings.Limits{Batch: new(5), Rate: map[string]string{"slow_": "1/h"}},
				Namespaces: map[string]settings.Namespace{"items": {Kind: "segment"}, "slow_": {Kind: "segment"}, "cards": {Kind: "uuid"}, "users": {}},
			},
			Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: registry, Monotonic: still,
			Audit: access.NewAudit(slog.New(slog.NewTextHandler(&out, nil)), still),
		})
		if err != nil {
			t.Fatal(err)
		}
		New(Config{Service: service, Log: slog.New(slog.DiscardHandler)}).play([]byte(c.in), func() int { return len(c.in) })
		if got := requests(t, registry); !maps.Equal(got, c.want) {
			t.Errorf("%q: counted %v, want %v", c.in, got, c.want)
		}
		if n := strings.Count(out.String(), "msg=denied"); n != c.denied {
			t.Errorf("%q: %d denials, want %d:\n%s", c.in, n, c.denied, out.String())
		}
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	}
}
