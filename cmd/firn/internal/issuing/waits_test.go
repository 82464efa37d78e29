package issuing_test

import (
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// The alert on firn_segment_waits_total counts requests per second. A request looks in memory first, without a timer, and
// then waits: that is one wait.
func TestARequestThatWaitsForARangeIsCountedOnce(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {items: {kind: segment, min_step: 1000}}")
	f := s.Front(issuing.RESP)
	caller := local(t, f)
	var b issuing.Batch
	for range 5 { // the first waits for a range
		if err := take(t, f, caller, "items", 2, &b); err != nil {
			t.Fatal(err)
		}
	}
	state, err := f.State(caller, "items")
	if err != nil {
		t.Fatal(err)
	}
	if waits := state.Segment.Waits; waits != 1 {
		t.Errorf("%d waits, and one request of five found no id in memory", waits)
	}
}
