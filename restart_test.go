package firn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// pausing is a time source that pauses after each reading of a clock, as a process on a busy
// machine may.
type pausing struct {
	*firntest.Clock
	pause time.Duration
}

func (p *pausing) Wall() time.Time {
	defer p.Pass(p.pause)
	return p.Clock.Wall()
}

func (p *pausing) Monotonic() time.Duration {
	defer p.Pass(p.pause)
	return p.Clock.Monotonic()
}

func TestARestartRepeatsNoIDWhereverTheProcessPauses(t *testing.T) {
	for _, pause := range []time.Duration{0, 2 * time.Millisecond, 50 * time.Millisecond, 5 * time.Second} {
		for _, unit := range []firn.Layout{firn.DefaultLayout(), seconds} {
			clock := newClock()
			seen := map[firn.ID]int{}
			for life := range 4 {
				// Only the start is slow; after that the generator runs at full speed.
				slow := &pausing{clock, pause}
				g, err := firn.New(7, firn.Config{Layout: unit, Time: slow, Start: firn.StartZero})
				if err != nil {
					t.Fatal(err)
				}
				slow.pause = 0
				for range 20_000 {
					run, err := g.Take(context.Background(), 8)
					if err != nil {
						t.Fatal(err)
					}
					for id := range run.All() {
						if before, ok := seen[id]; ok {
							t.Fatalf("%v, pauses of %v: life %d repeats %d of life %d", unit, pause, life, id, before)
						}
						seen[id] = life
					}
				}
			}
		}
	}
}

// A process that was ahead would repeat its ids after a restart.
func TestPausesPutNoSteadyClockAheadOfTheWall(t *testing.T) {
	slow := &pausing{Clock: newClock()}
	g := newGenerator(t, firn.Config{Time: slow, Ahead: -1})
	slow.pause = 50 * time.Millisecond
	for range 10 { // looks at the wall
		slow.Pass(time.Second)
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	slow.pause = 0
	if id, err := g.Next(t.Context()); err != nil || id.Time(g.Layout()).After(slow.Wall()) {
		t.Errorf("an id of %v at %v, %v", id.Time(g.Layout()), slow.Wall(), err)
	}
}

// A generator that continues with another worker need not wait until the clock has passed the fence.
func TestAHaltDoesNotCountTheRestOfTheGrantAsUsed(t *testing.T) {
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	for ids, want := range map[int]firn.Tick{0: now - 1, 1: now} {
		left := firn.Tick(-1)
		g, err := firn.NewLeased(firn.Config{Layout: seconds, Time: newClock(), Retired: func(_, _ int64, last firn.Tick) { left = last }},
			firn.Grant{Worker: 5, After: now - 1, Through: now + 60})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Fill(context.Background(), make([]firn.ID, ids)); err != nil {
			t.Fatal(err)
		}
		last := g.State().Last
		if at, ok := g.Halt(5); !ok || at != want || last != want || g.State().Last != want {
			t.Errorf("after %d ids: last %d, halted at %d, and then %d, not %d", ids, last-now, at-now, g.State().Last-now, want-now)
		}
		if err := g.Replace(firn.Grant{Worker: 6, After: now - 1, Through: now + 60}); err != nil || left != want {
			t.Errorf("after %d ids: the worker is left at %d, %v", ids, left-now, err)
		}
	}
}

func TestAHaltedGeneratorIssuesNothingUntilItHasAnotherGrant(t *testing.T) {
	g, clock, now := onLease(t, "", 100, nil)
	before, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Halt(6); ok {
		t.Error("Halt of another worker reported true")
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Errorf("halted for another worker: %v", err)
	}
	if _, ok := g.Halt(5); !ok {
		t.Fatal("not halted")
	}
	for range 3 {
		var fence *firn.FenceError
		if id, err := g.Next(t.Context()); !errors.As(err, &fence) || id != 0 || !fence.Revoked {
			t.Fatalf("%d, %v", id, err)
		}
		if want := "the grant of worker 5 was revoked: the generator continues when it has another grant"; fence.Error() != want || g.Check().Error() != want {
			t.Errorf("%v, and by Check %v", fence, g.Check())
		}
		if err := g.Extend(5, now+200); !errors.As(err, &fence) { // a renewal that began before Halt
			t.Fatal(err)
		}
		clock.Pass(50 * time.Second)
	}
	if err := g.Replace(firn.Grant{Worker: 9, After: now + 1, Through: now + 200}); err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context()); err != nil || id <= before || partsOf(seconds, id).Worker != 9 {
		t.Errorf("under another grant: %d after %d, %v", id, before, err)
	}
	if err := g.Extend(9, now+300); err != nil {
		t.Error(err)
	}
	clock.Pass(500 * time.Second)
	var fence *firn.FenceError
	if _, err := g.Next(t.Context()); !errors.As(err, &fence) || fence.Revoked {
		t.Errorf("at the fence of another grant: %v", err)
	}
	g.Stop()
	if _, ok := g.Halt(9); ok {
		t.Error("halted after the end")
	}
}

// Its fence is that of the layout, but it has not run out of time.
func TestAGrantWithoutAFenceCanBeRevoked(t *testing.T) {
	g, err := firn.New(5, firn.Config{Time: newClock()})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Halt(5); !ok {
		t.Fatal("not halted")
	}
	if _, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) {
		t.Error(err)
	}
}

// slewed is a time source whose wall clock is slower than its monotonic clock, as while it is slewed.
type slewed struct {
	*firntest.Clock
	begun time.Time
	ppm   int64
}

func (s slewed) Wall() time.Time {
	passed := s.Monotonic()
	return s.begun.Add(passed - passed*time.Duration(s.ppm)/1_000_000)
}

// The wall clock never goes back here, but between two looks the steady clock runs ahead of it.
func TestARestartBesideASlewedWallClockRepeatsNoID(t *testing.T) {
	l := mustLayout("41/0/14/4")
	for _, ppm := range []int64{500, 5_000, 50_000, 200_000} {
		clock := slewed{newClock(), noon, ppm}
		last := firn.ID(-1)
		for life := range 8 {
			g, err := firn.New(7, firn.Config{Layout: l, Time: clock})
			if err != nil {
				t.Fatal(err)
			}
			for begun := clock.Monotonic(); clock.Monotonic()-begun < 995*time.Millisecond; {
				id, err := g.Next(t.Context())
				if err != nil || id <= last {
					t.Fatalf("%d ppm, life %d: %d after %d, %v", ppm, life, id, last, err)
				}
				last = id
			}
			g.Stop()
		}
	}
}

// The policy ahead lets ids run ahead of the clock long after the step back that it served.
func TestARestartRepeatsNoIDOfThePolicyAhead(t *testing.T) {
	small, err := firn.ParseLayout("41/0/18/4")
	if err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{-1, 10 * time.Millisecond} {
		clock := newClock()
		seen := map[firn.ID]int{}
		for life := range 3 {
			g, err := firn.New(7, firn.Config{Layout: small, Clock: firn.ClockWall, Ahead: ahead, Rollback: firn.Rollback{firn.RunAhead(1000)}, Start: firn.StartZero, Time: clock})
			if err != nil {
				t.Fatal(err)
			}
			for n := range 40_000 {
				id, err := g.Next(t.Context())
				if errors.Is(err, firn.ErrClockBack) { // the policy is used up
					clock.Pass(time.Millisecond)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if before, ok := seen[id]; ok {
					t.Fatalf("life %d repeats %d of life %d", life, id, before)
				}
				seen[id] = life
				if n == 0 {
					clock.Step(-20 * time.Millisecond)
				}
			}
			if ids := g.State().Last; life == 0 && g.Layout().Time(ids).Sub(clock.Wall()) < time.Second-10*time.Millisecond {
				t.Fatal("the ids are not ahead of the clock")
			}
		}
	}
}

// Such a grant has no fence, so the next life begins by the wall clock alone.
func TestAGrantWithoutAFenceStaysNearASlewedWallClock(t *testing.T) {
	l, err := firn.ParseLayout("41/0/4/3")
	if err != nil {
		t.Fatal(err)
	}
	for through, unfenced := range map[firn.Tick]bool{firn.Tick(firn.MaxID): false, l.MaxTick(): true} {
		clock := firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
		clock.Rate(0.9167)
		cfg := firn.Config{Time: clock, Layout: l, Unfenced: unfenced}
		made := map[firn.ID]bool{}
		for range 3 {
			after, err := l.Tick(clock.Wall().Add(cfg.Lead()))
			if err != nil {
				t.Fatal(err)
			}
			g, err := firn.NewLeased(cfg, firn.Grant{Worker: 3, After: after, Through: through})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock.Step(-time.Millisecond) // which the slack covers
			for began := clock.Monotonic(); clock.Monotonic()-began < 950*time.Millisecond; {
				id, err := g.Next(t.Context())
				if err != nil || made[id] {
					t.Fatalf("unfenced %v: %d again, %v", unfenced, id, err)
				}
				made[id] = true
			}
		}
	}
}

func TestAHaltOfAnotherWorkerDoesNothing(t *testing.T) {
	g, _, _ := onLease(t, "refuse", 1000, nil)
	before := g.State()
	if last, halted := g.Halt(4); last != 0 || halted || g.State() != before {
		t.Errorf("%d, %v, %+v", last, halted, g.State())
	}
}
