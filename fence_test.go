package firn_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// TestAFenceBelowAllTicksIsRefused: shifted into positions, a negative tick would be a
// fence above all of them.
func TestAFenceBelowAllTicksIsRefused(t *testing.T) {
	l := mustLayout("41/0/6/3")
	now, err := l.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	clock := newFakeTime()
	cfg := firn.Config{Layout: l, Clock: firn.Wall, Time: clock}
	for _, through := range []firn.Tick{-2, math.MinInt64} {
		if g, err := firn.NewLeased(cfg, firn.Grant{Worker: 1, After: now - 1, Through: through}); !errors.Is(err, firn.ErrRange) {
			t.Errorf("%v for a fence at %d: %v", g, through, err)
		}
	}
	g, err := firn.NewLeased(cfg, firn.Grant{Worker: 1, After: now - 1, Through: now + 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Extend(1, -2); !errors.Is(err, firn.ErrRange) {
		t.Errorf("Extend to -2: %v", err)
	}
	if err := g.Replace(firn.Grant{Worker: 2, After: now - 1, Through: -2}); !errors.Is(err, firn.ErrRange) {
		t.Errorf("Replace by a grant through -2: %v", err)
	}
	clock.Pass(time.Hour)
	if id, err := g.Next(); !errors.Is(err, firn.ErrFence) || g.State().Fence != now+1 {
		t.Errorf("beyond the fence: id %d, %v, %+v", id, err, g.State())
	}
}

// TestAGrantOfNothingIssuesNothing: -1 is the fence below the first tick.
func TestAGrantOfNothingIssuesNothing(t *testing.T) {
	l := mustLayout("41/0/6/3")
	g, err := firn.NewLeased(firn.Config{Layout: l, Clock: firn.Wall, Time: newFakeTime()}, firn.Grant{After: -1, Through: -1})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(); !errors.Is(err, firn.ErrFence) {
		t.Errorf("id %d, %v", id, err)
	}
}
