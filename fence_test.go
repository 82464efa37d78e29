package firn_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// Shifted to a position, a negative tick would become a fence above all ticks.
func TestAFenceBelowAllTicksIsRefused(t *testing.T) {
	l := mustLayout("41/0/6/3")
	now, err := l.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	cfg := firn.Config{Layout: l, Clock: firn.ClockWall, Time: clock}
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
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) || g.State().Fence != now+1 {
		t.Errorf("beyond the fence: id %d, %v, %+v", id, err, g.State())
	}
}

// The fence -1 is below the first tick.
func TestAnEmptyGrantIssuesNothing(t *testing.T) {
	l := mustLayout("41/0/6/3")
	g, err := firn.NewLeased(firn.Config{Layout: l, Clock: firn.ClockWall, Time: newClock()}, firn.Grant{After: -1, Through: -1})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) {
		t.Errorf("id %d, %v", id, err)
	}
}

// The error is a FenceError while the clock is back, and when it has caught up.
func TestAFenceReachedWhileCountingOnIsReportedAtOnce(t *testing.T) {
	for _, chain := range []string{
		"ahead 1000", "ahead 1000, history 8", "history 1, ahead 1000", "wait 1s, ahead 1000, refuse", "ahead 1000, switch",
	} {
		g, clock, _ := onLease(t, chain, 100, func(context.Context, firn.Tick) (firn.Grant, error) {
			return firn.Grant{}, errors.New("no worker left")
		})
		clock.Step(-10 * time.Second)
		if n, err := g.Fill(context.Background(), make([]firn.ID, 1000)); n != 807 || !errors.Is(err, firn.ErrFence) {
			t.Errorf("%s: while the clock is back: %d ids, %v", chain, n, err)
		}
		clock.Pass(11 * time.Second)
		if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) || clock.Slept() != 0 {
			t.Errorf("%s: when it has caught up: id %d, %v, after sleeping %v", chain, id, err, clock.Slept())
		}
		clock.Step(-2000 * time.Second) // further than ahead allows: no renewal would help
		if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) {
			t.Errorf("%s: further back than ahead reaches: id %d, %v", chain, id, err)
		}
	}
}

func TestAPolicyAfterAheadServesWhenTheFenceIsReached(t *testing.T) {
	g, clock, _ := onLease(t, "ahead 1000, switch", 0, func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		return firn.Grant{Worker: 2, After: from - 1, Through: seconds.MaxTick()}, nil
	})
	if run, err := g.Take(context.Background(), 100); err != nil || run.Len() != 7 {
		t.Fatalf("%d ids of the rest of a tick, %v", run.Len(), err)
	}
	clock.Step(-10 * time.Second)
	if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Worker != 2 {
		t.Errorf("id %d, %v", id, err)
	}
}

func TestAGeneratorThatIsStoppedAtItsFenceIsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var g *firn.Generator
	g, err := firn.NewLeased(firn.Config{AtFence: func(context.Context, *firn.FenceError) error {
		g.Stop()
		cancel()
		return nil
	}}, firn.Grant{Worker: 1, After: -1, Through: 5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(ctx); !errors.Is(err, firn.ErrClosed) {
		t.Error(err)
	}
}
