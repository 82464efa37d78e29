package firn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// Under a new grant the first decision may be to count on, when there is no id yet to count on
// from.
func TestAGrantReceivedWhileTheClockIsBackIsNotExceeded(t *testing.T) {
	l := mustLayout("41/0/3/5,unit=1s")
	for _, chain := range []firn.Rollback{
		{firn.History(8, time.Second), firn.RunAhead(500)},
		{firn.RunAhead(500), firn.History(8, time.Second)},
		{firn.History(8, time.Second)},
		{firn.RunAhead(500)},
	} {
		clock := newClock()
		now, err := l.Tick(clock.Wall())
		if err != nil {
			t.Fatal(err)
		}
		g, err := firn.NewLeased(firn.Config{Layout: l, Clock: firn.ClockWall, Rollback: chain, Time: clock},
			firn.Grant{Worker: 1, After: now - 1, Through: now + 60})
		if err != nil {
			t.Fatal(err)
		}
		last, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		clock.Step(-10 * time.Second)
		if err := g.Replace(firn.Grant{Worker: 2, After: now + 4, Through: now + 30}); err != nil {
			t.Fatal(err)
		}
		made := 0
		for range 300 {
			id, err := g.Next(t.Context())
			if errors.Is(err, firn.ErrClockBack) || errors.Is(err, firn.ErrFence) {
				clock.Pass(time.Second)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if tick := partsOf(l, id).Tick; partsOf(l, id).Worker != 2 || tick < now+5 || tick > now+30 || id <= last {
				t.Fatalf("%v: id %d of worker %d, tick %d; granted are %d to %d", chain, id, partsOf(l, id).Worker, tick, now+5, now+30)
			}
			last = id
			made++
		}
		if made < 50 {
			t.Errorf("%v: only %d ids", chain, made)
		}
	}
}

// This holds even if no id was issued in between.
func TestIDsIncreaseOverSeveralReplacements(t *testing.T) {
	l := mustLayout("41/0/3/5,unit=1s")
	clock := newClock()
	now, err := l.Tick(clock.Wall())
	if err != nil {
		t.Fatal(err)
	}
	grant := func(worker int64) firn.Grant { return firn.Grant{Worker: worker, After: now - 1, Through: now + 60} }
	g, err := firn.NewLeased(firn.Config{Layout: l, Time: clock}, grant(5))
	if err != nil {
		t.Fatal(err)
	}
	before, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, worker := range []int64{6, 0} {
		if err := g.Replace(grant(worker)); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := g.Next(t.Context()); err != nil || after <= before {
		t.Errorf("id %d of worker %d after %d of worker %d: %v", after, partsOf(l, after).Worker, before, partsOf(l, before).Worker, err)
	}
	if got := g.State().Last; got != now+1 {
		t.Errorf("the id carries tick %d, want %d", got, now+1)
	}
}

// If the worker is replaced while the policy ahead runs ahead of the clock, callers need not
// wait until the clock has caught up.
func TestThePolicyAheadContinuesUnderAnotherGrant(t *testing.T) {
	for _, chain := range []string{"ahead 1000", "ahead 1000, history 8"} {
		g, clock, now := onLease(t, chain, 100_000, nil)
		clock.Step(-10 * time.Second)
		ids := make([]firn.ID, 800) // of 100 ticks
		if _, err := g.Fill(context.Background(), ids); err != nil {
			t.Fatal(err)
		}
		clock.Pass(11 * time.Second) // the clock has caught up with its earlier readings, not with the ids
		if err := g.Replace(firn.Grant{Worker: 1, After: now - 1, Through: now + 100_000}); err != nil {
			t.Fatal(err)
		}
		if id, err := g.Next(t.Context()); err != nil || clock.Slept() != 0 || id <= ids[len(ids)-1] {
			t.Errorf("%s: id %d after %d, %v, after sleeping %v", chain, id, ids[len(ids)-1], err, clock.Slept())
		}
	}
}

// A switch gives up order, so ids under the next grant need not follow earlier ones.
func TestAfterASwitchWithoutIDsACallNeedNotWait(t *testing.T) {
	g, clock, now := onLease(t, "switch", 100_000, func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		return firn.Grant{Worker: 2, After: from - 1, Through: from - 1}, nil // nothing yet
	})
	clock.Step(-1000 * time.Second)
	if _, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) {
		t.Fatal(err)
	}
	if err := g.Replace(firn.Grant{Worker: 3, After: now - 1001, Through: now - 900}); err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context()); err != nil || clock.Slept() != 0 || partsOf(seconds, id).Tick != now-1000 {
		t.Errorf("id %d of tick %d, %v, after sleeping %v", id, partsOf(seconds, id).Tick, err, clock.Slept())
	}
}
