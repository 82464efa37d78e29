package registrar_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// before runs do once, before the n-th write of a bucket.
func before(n int, do func()) func(storetest.Call) storetest.Outcome {
	return func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/instance/") {
			if n--; n == 0 {
				do()
			}
		}
		return storetest.Pass
	}
}

// TestAPausedServerDoesNotAssignALostNumber pauses a server between the write of the machine
// and the second write of the bucket, while another server assigns the number.
func TestAPausedServerDoesNotAssignALostNumber(t *testing.T) {
	clock, s := firntest.NewClock(start), memstore.New(nil)
	faulty := storetest.NewFaulty(s)
	slow, other := desk{open(t, faulty, clock), t}, desk{open(t, s, clock), t}
	other.gives(stable("kept"), 1, fiveMinutes, 0)
	faulty.Script = before(2, func() {
		clock.Pass(6 * time.Minute)
		other.gives(instance("b"), 1, fiveMinutes, 1)
	})
	if got, err := slow.Distribute(ctx, instance("a"), 1, fiveMinutes); err == nil {
		t.Errorf("a got %d, which b has", got.Machine)
	}
}

func TestAReturnedStampIsRecent(t *testing.T) {
	clock := firntest.NewClock(start)
	faulty := storetest.NewFaulty(memstore.New(nil))
	d := desk{open(t, faulty, clock), t}
	faulty.Script = before(2, func() { clock.Pass(6 * time.Minute) })
	if got := d.gives(instance("a"), 10, fiveMinutes, 0); got.Stamp < start.Add(6*time.Minute).UnixMilli() {
		t.Errorf("the stamp is %d ms old", clock.Wall().UnixMilli()-got.Stamp)
	}
}

// TestRevertKeepsANewAssignment lets an instance request a number from another server during
// its Revert.
func TestRevertKeepsANewAssignment(t *testing.T) {
	clock, s := firntest.NewClock(start), memstore.New(nil)
	faulty := storetest.NewFaulty(s)
	one, two := desk{open(t, faulty, clock), t}, desk{open(t, s, clock), t}
	one.gives(instance("a"), 10, fiveMinutes, 0)
	faulty.Script = before(1, func() { two.gives(instance("a"), 10, fiveMinutes, 0) })
	one.reverts(instance("a"), nil)
	two.guards(instance("a"), nil)
}
