package leases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
)

// TestStripesOnTwoStores runs two processes that issue ids of one name, each with a store of its own.
// It kills one store until its process has used up its range, and restarts it.
func TestStripesOnTwoStores(t *testing.T) {
	for _, test := range []struct {
		name  string
		other func(t testing.TB) *backend
	}{{"two Redis", onRedis}, {"Redis and MariaDB", onMariaDB}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			stores := []*backend{onRedis(t), test.other(t)}
			var both []*issuer
			for offset, b := range stores {
				i, err := startIssuer(b.url, plan{
					name: "orders", offset: int64(offset), stride: 2, step: 2000, most: 2000, target: time.Second, pace: time.Millisecond, callers: 1,
				})
				check(t, err)
				both = append(both, i)
			}
			down, up := both[0], both[1]
			down.made(t, 500)
			up.made(t, 500)

			stores[0].kill()
			down.mu.Lock()
			before := len(down.calls) // received while the store was still up
			down.mu.Unlock()
			if !down.until(func(_ []issued, failures []string) bool { return len(failures) > 20 }) {
				t.Fatalf("the process ended early: %s", down.stderr.String())
			}
			down.mu.Lock()
			left, issuedSince := down.calls[before-1].left, int64(0)
			for _, c := range down.calls[before:] {
				issuedSince += c.ids.Count
			}
			failure := down.failures[0]
			down.mu.Unlock()
			if left == 0 || issuedSince < left {
				t.Errorf("without its store the process issued %d ids, but had %d left", issuedSince, left)
			}
			for _, want := range []string{`fetch a range of "orders"`, unavailable} {
				if !strings.Contains(failure, want) {
					t.Errorf("then it fails with %q, want %q in it", failure, want)
				}
			}
			up.made(t, 500) // the other process is not affected

			stores[0].restart()
			down.made(t, 500)
			up.made(t, 500)
			for _, i := range both {
				check(t, i.end(false))
			}
			for _, failure := range up.failures {
				if !strings.HasPrefix(failure, ended) {
					t.Errorf("the process whose store was up failed: %s", failure)
				}
			}
			seen := map[firn.ID]int{}
			for offset, i := range both {
				last := firn.ID(-1)
				for _, c := range i.calls {
					for id := range c.ids.All() {
						if other, ok := seen[id]; ok {
							t.Fatalf("%d was issued by %d and %d", id, other, offset)
						}
						if int64(id)%2 != int64(offset) || id <= last {
							t.Fatalf("stripe %d issued %d after %d", offset, id, last)
						}
						seen[id], last = offset, id
					}
				}
			}

			// A process with the other store's stripe is refused.
			_, err := segment.RaiseCounter(t.Context(), stores[0].open(t), "orders", 1, segment.Stripe{Offset: 1, Stride: 2})
			if want := "offset 0 of stride 2, not offset 1 of stride 2"; err == nil || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("the other stripe on the first store: %v", err)
			}
			t.Logf("%d ids; %d of them without the store, with %d left; then %s", len(seen), issuedSince, left, failure)
		})
	}
}
