package firn

import (
	"errors"
	"testing"
)

// The core's rules never lead to this call. If a bug does, the core refuses and stays unchanged.
func TestTheCoreRefusesToIssueOutsideItsGrant(t *testing.T) {
	for claim, c := range map[string]struct {
		pos, limit uint64
		issued     bool
	}{
		"all of the grant":    {80, 160, true},
		"one below the floor": {79, 160, false},
		"one above the fence": {80, 161, false},
		"both":                {79, 161, false},
	} {
		c0 := core{floor: 80, ceiling: 160}
		d := c0.issue(c.pos, c.limit, 100)
		if issued := d.act == actIssue; issued != c.issued || !issued && (!errors.Is(d.err, errOutside) || c0.pos != 0 || c0.high != 0) {
			t.Errorf("%s: %+v, and then %d, %d", claim, d, c0.pos, c0.high)
		}
	}
}

func TestATickUnknownToTheHistoryBeginsAboveAllUsedPositions(t *testing.T) {
	c := core{layout: seconds, start: StartZero, high: 12<<3 + 5, history: newHistory(1)}
	if top := c.highTick(); top != 12 {
		t.Errorf("the highest tick is %d", top)
	}
	for tick, want := range map[Tick]uint64{5: 12<<3 + 5, 10: 12<<3 + 5, -1: 1<<64 - 1<<3, 11: 11 << 3, 13: 13 << 3} {
		if got := c.entry(tick); got != want {
			t.Errorf("tick %d begins at %d, not %d", tick, got, want)
		}
	}
	for _, c.high = range []uint64{12<<3 + 1, 13 << 3} { // one position of tick 12, and all of them
		if top := c.highTick(); top != 12 {
			t.Errorf("used below %d, the highest tick is %d", c.high, top)
		}
	}
	c.high = 0
	if top := c.highTick(); top != -1 {
		t.Errorf("with no ids the highest tick is %d", top)
	}
}
