package issuing_test

import (
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// A balancer that left a server for this would leave them all.
func TestACounterThatIsUsedUpLeavesAServerReady(t *testing.T) {
	for _, kind := range []string{"segment, from: 9223372036854775807", "sequence, from: 9223372036854775807", "number, template: 'A{n:1}'"} {
		s := opened(t, memstore.New(nil), "namespaces: {orders: {kind: "+kind+"}}")
		f := s.Front(issuing.HTTP)
		var b issuing.Batch
		taken := 0
		for take(t, f, local(t, f), "orders", 1, &b) == nil {
			taken++
		}
		if taken == 0 {
			t.Errorf("%s: none was issued", kind)
		}
		for range 3 {
			if err := take(t, f, local(t, f), "orders", 1, &b); failure.Of(err).Code != "exhausted" {
				t.Errorf("%s: %v", kind, err)
			}
			if err := s.Ready(); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if err := s.Ready("orders"); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}
