package firn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// In layouts without worker bits the last positions are next to 2^63, and callers'
// additions exceed it.
func TestNoIDIsRepeatedAtTheEndOfA63BitLayout(t *testing.T) {
	for _, text := range []string{"mastodon", "62/0/0/1", "63/0/0/0", "41/0/0/22", "40/0/1/22"} {
		l := mustLayout(text)
		for _, n := range []int{1, 7, 1000, 1 << 30} {
			g := newGenerator(t, firn.Config{
				Layout: l, Clock: firn.ClockVirtual, From: l.Time(l.MaxTick() - 2), Start: firn.StartZero, Time: newClock(),
			})
			last, made := firn.ID(-1), int64(0)
			var err error
			for range 300_000 {
				var run firn.Run
				if run, err = g.Take(context.Background(), n); err != nil {
					break
				}
				if run.At(0) <= last {
					t.Fatalf("%s, %d at a time: id %d after %d", text, n, run.At(0), last)
				}
				last = run.At(run.Len() - 1)
				made += int64(run.Len())
			}
			want := 3 * (l.MaxSequence() + 1)
			if int64(n)*300_000 < want {
				continue // too slow
			}
			if !errors.Is(err, firn.ErrTimeExhausted) || made != want {
				t.Errorf("%s, %d at a time: %d ids of %d, and then %v", text, n, made, want, err)
			}
			for range 5 { // further calls change nothing
				if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrTimeExhausted) {
					t.Fatalf("%s: id %d after the end, %v", text, id, err)
				}
			}
		}
	}
}

// No call waits an hour for a generator that has ended.
func TestAWaitEndsWithTheGenerator(t *testing.T) {
	clock := newClock()
	var g *firn.Generator
	g = newGenerator(t, firn.Config{Layout: mustLayout("30/0/10/2,unit=1h"), Time: &stopping{clock, func() { g.Stop() }}})
	begun := clock.Wall()
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClosed) || clock.Wall().Sub(begun) > 3*time.Second {
		t.Errorf("id %d, %v, after %v", id, err, clock.Wall().Sub(begun))
	}
}

// stopping is a time source that calls a function during each sleep.
type stopping struct {
	*firntest.Clock
	do func()
}

func (s *stopping) Sleep(ctx context.Context, d time.Duration) error {
	s.do()
	return s.Clock.Sleep(ctx, d)
}

// The grant whose beginning a call waits for may be revoked meanwhile.
func TestAWaitEndsWithItsGrant(t *testing.T) {
	clock := newClock()
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	var g *firn.Generator
	g, err = firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockWall, Time: &stopping{clock, func() { g.Halt(5) }}},
		firn.Grant{Worker: 5, After: now + 1800, Through: now + 7200})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) || clock.Slept() > time.Second {
		t.Errorf("id %d, %v, after %v", id, err, clock.Slept())
	}
}

// A machine is suspended while a call waits for its grant to begin. Once the clock has
// caught up, the wait ends.
func TestAWaitFollowsTheClock(t *testing.T) {
	clock := newClock()
	l := mustLayout("41/0/3/5,unit=1s")
	now, err := l.Tick(clock.Wall())
	if err != nil {
		t.Fatal(err)
	}
	slept := 0
	g, err := firn.NewLeased(firn.Config{Layout: l, Clock: firn.ClockWall, Time: &stopping{clock, func() {
		if slept++; slept == 3 {
			clock.Step(time.Hour)
		}
	}}}, firn.Grant{After: now + 1800, Through: now + 7200})
	if err != nil {
		t.Fatal(err)
	}
	begun := clock.Monotonic()
	if id, err := g.Next(t.Context()); err != nil || clock.Monotonic()-begun > 5*time.Second {
		t.Errorf("id %d, %v, after %v", id, err, clock.Monotonic()-begun)
	}
}

// No call sleeps half an hour for a clock that is corrected after three seconds.
func TestATryEndsWhenTheClockHasBeenCorrected(t *testing.T) {
	clock := newClock()
	slept := 0
	g := newGenerator(t, firn.Config{
		Layout: mustLayout("41/0/6/3"), Clock: firn.ClockWall, Rollback: parseChain(t, "wait 1h"), Time: &stopping{clock, func() {
			if slept++; slept == 4 {
				clock.Step(30 * time.Minute)
			}
		}},
	})
	if _, err := g.Next(t.Context()); err != nil { // the first sleep
		t.Fatal(err)
	}
	clock.Step(-30 * time.Minute)
	begun := clock.Monotonic()
	if id, err := g.Next(t.Context()); err != nil || clock.Monotonic()-begun > 3*time.Second {
		t.Errorf("id %d, %v, after %v", id, err, clock.Monotonic()-begun)
	}
}

// A call that waits under one worker continues with the next worker when the generator
// changes to it.
func TestATryEndsWithItsWorker(t *testing.T) {
	l := mustLayout("41/0/6/3,unit=1s")
	now, err := l.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	var g *firn.Generator
	slept := 0
	g, err = firn.NewLeased(firn.Config{
		Layout: l, Clock: firn.ClockWall, Rollback: parseChain(t, "wait 1h 1, switch"), Time: &stopping{clock, func() {
			if slept++; slept == 3 {
				clock.Step(-2 * time.Hour) // so far that another call switches workers
				if id, err := g.Next(t.Context()); err != nil || partsOf(l, id).Worker != 2 {
					t.Errorf("the other caller: id %d, %v", id, err)
				}
			}
		}},
		Switch: func(_ context.Context, from firn.Tick) (firn.Grant, error) {
			return firn.Grant{Worker: 2, After: from - 1, Through: l.MaxTick()}, nil
		},
	}, firn.Grant{Worker: 1, After: now - 1, Through: l.MaxTick()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(-30 * time.Minute)
	begun := clock.Monotonic()
	if id, err := g.Next(t.Context()); err != nil || partsOf(l, id).Worker != 2 || clock.Monotonic()-begun > 4*time.Second {
		t.Errorf("id %d, %v, after %v", id, err, clock.Monotonic()-begun)
	}
}

func TestAnExhaustedVirtualClockShowsTheLastTick(t *testing.T) {
	for _, text := range []string{"1/0/0/0,unit=1h", "63/0/0/0", "41/0/6/3"} {
		l := mustLayout(text)
		g, err := firn.NewLeased(firn.Config{Layout: l, Clock: firn.ClockVirtual, From: l.Epoch(), Time: newClock()},
			firn.Grant{After: l.MaxTick() - 1, Through: l.MaxTick()})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = g.Next(t.Context())
		}
		if got := g.Now(); !errors.Is(err, firn.ErrTimeExhausted) || got != l.MaxTick() {
			t.Errorf("%s: after %v it shows %d, the last tick is %d", text, err, got, l.MaxTick())
		}
	}
}
