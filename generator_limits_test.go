package firn_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestOneTakeIsAtMostTwoToTheThirty(t *testing.T) {
	l := mustLayout("20/0/0/43")
	g := newGenerator(t, firn.Config{Layout: l, Clock: firn.ClockVirtual, From: l.Time(9), Start: firn.StartZero, Time: newClock()})
	for _, c := range []struct{ n, want int }{{1<<30 - 1, 1<<30 - 1}, {1 << 30, 1 << 30}, {1<<30 + 1, 1 << 30}, {math.MaxInt, 1 << 30}} {
		run, err := g.Take(context.Background(), c.n)
		if err != nil || run.Len() != c.want {
			t.Errorf("take %d: %d, %v", c.n, run.Len(), err)
		}
	}
}

func TestAGrantOfAllTicksBeginsAtThePresent(t *testing.T) {
	for _, kind := range []firn.ClockKind{firn.ClockSteady, firn.ClockWall, firn.ClockVirtual} {
		for _, bits := range []string{"41/0/10/12", "50/0/5/8", "63/0/0/0"} {
			clock, l := newClock(), mustLayout(bits)
			g, err := firn.NewLeased(firn.Config{Layout: l, Clock: kind, Time: clock}, firn.Grant{After: -1, Through: l.MaxTick()})
			if err != nil {
				t.Fatal(err)
			}
			id, err := g.Next(t.Context())
			if at := id.Time(l); err != nil || !at.Equal(noon) {
				t.Errorf("layout %s, clock %v: an id of %v, %v", bits, kind, at, err)
			}
		}
	}
}

// A grant begins ahead of the clock if the worker's last holder had a faster clock. The
// steady clock begins there, less Ahead, and runs on.
func TestASteadyClockBeginsWithAGrantThatLiesAhead(t *testing.T) {
	clock := newClock()
	l := firn.DefaultLayout()
	now, err := l.Tick(clock.Wall())
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{Time: clock, Start: firn.StartZero}, firn.Grant{After: now + 5000, Through: now + 60_000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range int64(3) {
		id, err := g.Next(ctx)
		if want := max(5001, 4991+firn.Tick(10*i)); err != nil || partsOf(l, id).Tick != now+want {
			t.Errorf("tick %d, %v; want %d", partsOf(l, id).Tick-now, err, want)
		}
		clock.Pass(10 * time.Millisecond)
	}
}
