package firn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// usedUp returns a generator on a wall clock with a lead of 10ms. A burst has used up the
// lead, and then the clock was set back by step.
func usedUp(t *testing.T, chain string, through firn.Tick, step time.Duration) (*firn.Generator, *firntest.Clock, *int) {
	t.Helper()
	clock, switched := newClock(), 0
	l := mustLayout("41/0/6/3")
	now, err := l.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{
		Layout: l, Clock: firn.ClockWall, Rollback: parseChain(t, chain), Ahead: 10 * time.Millisecond, Start: firn.StartZero,
		Time: sleeping{clock, t},
		Switch: func(_ context.Context, from firn.Tick) (firn.Grant, error) {
			switched++
			return firn.Grant{Worker: int64(switched), After: from - 1, Through: l.MaxTick()}, nil
		},
	}, firn.Grant{After: now - 1, Through: now + through})
	if err != nil {
		t.Fatal(err)
	}
	clock.Pass(time.Millisecond)
	if run, err := g.Take(context.Background(), 1000); err != nil || run.Len() != 88 {
		t.Fatalf("%d ids of the present tick and ten more, %v", run.Len(), err)
	}
	clock.Step(-step)
	return g, clock, &switched
}

// This holds even when the lead is used up.
func TestAStepBackSmallerThanTheLeadIsHidden(t *testing.T) {
	for _, chain := range []string{"", "refuse", "switch", "ahead 5"} {
		for _, step := range []time.Duration{time.Millisecond, 9 * time.Millisecond} {
			g, clock, switched := usedUp(t, chain, 1000, step)
			id, err := g.Next(t.Context())
			if err != nil || *switched > 0 || clock.Slept() != step+time.Millisecond {
				t.Errorf("chain %q, %v back: id %d, %v; slept %v, switched %d times", chain, step, id, err, clock.Slept(), *switched)
			}
		}
	}
}

func TestAStepBackAsLargeAsTheLeadIsServedByTheChain(t *testing.T) {
	g, _, _ := usedUp(t, "refuse", 1000, 11*time.Millisecond)
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) {
		t.Errorf("id %d, %v", id, err)
	}
	g, _, switched := usedUp(t, "switch", 1000, 11*time.Millisecond)
	if _, err := g.Next(t.Context()); err != nil || *switched != 1 {
		t.Errorf("switched %d times, %v", *switched, err)
	}
}

func TestAFenceWithinTheLeadIsReportedAsAFenceError(t *testing.T) {
	g, clock, _ := usedUp(t, "refuse", 11, time.Millisecond)
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) || clock.Slept() != 0 {
		t.Errorf("id %d, %v, after sleeping %v", id, err, clock.Slept())
	}
}
