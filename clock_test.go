package firn_test

import (
	"context"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// noon is well within the default layout.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newClock() *firntest.Clock { return firntest.NewClock(noon) }

func mustLayout(text string) firn.Layout {
	l, err := firn.ParseLayout(text)
	if err != nil {
		panic(err)
	}
	return l
}

// seconds has ticks of a second, with eight ids each.
var seconds = mustLayout("41/0/6/3,unit=1s")

// onLease returns a generator of worker 5 on a wall clock that shows tick now. It has issued
// the first id of that tick, and its grant ends more ticks later.
func onLease(t *testing.T, chain string, more firn.Tick, switchTo func(context.Context, firn.Tick) (firn.Grant, error)) (g *firn.Generator, clock *firntest.Clock, now firn.Tick) {
	t.Helper()
	clock = newClock()
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err = firn.NewLeased(firn.Config{
		Layout: seconds, Clock: firn.ClockWall, Rollback: parseChain(t, chain), Start: firn.StartZero, Time: clock, Switch: switchTo,
	}, firn.Grant{Worker: 5, After: now - 1, Through: now + more})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, clock, now
}
