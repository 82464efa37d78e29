package firn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// Nanoseconds since 1970 fit an int64 from the year 1677 to 2262.

// A clock that followed the wall clock into that year, and issued no id there, is right again
// when the wall clock is.
func TestASteadyClockComesBackFromAFarYear(t *testing.T) {
	for _, year := range []int{1, 1600, 1677, 2200, 2262, 2300, 2500, 9999} {
		clock := newClock()
		g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/10/12,unit=10ms"), Time: clock})
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Set(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC))
		for range 10 {
			clock.Pass(time.Second)
			g.Now()
		}
		clock.Set(noon.Add(11 * time.Second))
		for range 20 {
			clock.Pass(time.Second)
			g.Now()
		}
		id, err := g.Next(t.Context())
		if at := id.Time(g.Layout()); err != nil || at.Sub(clock.Wall()).Abs() > time.Second {
			t.Errorf("year %d: 20s after the wall is right again: an id of %v at %v, %v", year, at, clock.Wall(), err)
		}
	}
}

func TestAWallClockInAFarYearIsPastTheEndOrBeforeTheEpoch(t *testing.T) {
	for _, year := range []int{2300, 2611, 9999} {
		clock := newClock()
		g := newGenerator(t, firn.Config{Clock: firn.ClockWall, Rollback: parseChain(t, "wait 500ms 3"), Time: sleeping{clock, t}})
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Set(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC))
		if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrTimeExhausted) {
			t.Errorf("year %d: id %d, %v", year, id, err)
		}
		clock.Set(noon.Add(time.Second))
		if _, err := g.Next(t.Context()); err != nil {
			t.Errorf("after the year %d: %v", year, err)
		}
		clock.Set(time.Date(-year, 6, 1, 0, 0, 0, 0, time.UTC))
		var back *firn.ClockBackError
		if id, err := g.Next(t.Context()); !errors.As(err, &back) || back.By <= 0 {
			t.Errorf("year %d: id %d, %v", -year, id, err)
		}
	}
}

// A call that waits for a tick past 2262 sleeps, and checks from time to time whether it must
// still wait.
func TestAWaitForATimeNoClockCanShowSleeps(t *testing.T) {
	l := mustLayout("41/0/6/3,unit=10ms")
	far, err := l.Tick(time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	errEnough := errors.New("enough")
	for _, cfg := range []firn.Config{
		{}, {Ahead: -1}, {Clock: firn.ClockWall}, {Clock: firn.ClockWall, Ahead: time.Hour},
		{Clock: firn.ClockWall, Rollback: parseChain(t, "ahead 1000, history 8")}, {Clock: firn.ClockVirtual, Ahead: time.Second, From: noon},
	} {
		for _, year := range []int{2026, 2262, 2300, 2500} {
			clock := newClock()
			clock.Set(time.Date(year, 4, 11, 23, 47, 0, 0, time.UTC))
			ctx, cancel := context.WithCancelCause(context.Background())
			sleeps := 0
			cfg.Layout = l
			cfg.Time = &counted{sleeping{clock, t}, func() {
				if sleeps++; sleeps == 100 {
					cancel(errEnough)
				}
			}}
			g, err := firn.NewLeased(cfg, firn.Grant{After: far, Through: far + 100})
			if err != nil {
				t.Fatal(err)
			}
			id, err := g.Next(ctx)
			if !errors.Is(err, errEnough) || clock.Slept() < 99*time.Second {
				t.Errorf("clock %v, ahead %v, year %d: id %d, %v; slept %v in %d sleeps", cfg.Clock, cfg.Ahead, year, id, err, clock.Slept(), sleeps)
			}
		}
	}
}

// counted is a time source that calls do for each sleep.
type counted struct {
	sleeping
	do func()
}

func (c *counted) Sleep(ctx context.Context, d time.Duration) error {
	c.do()
	return c.sleeping.Sleep(ctx, d)
}
