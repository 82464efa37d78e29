//go:build !race

// These make millions of ids in one goroutine, which the race detector would only slow down.
package objectid_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/objectid"
)

func TestIDsAreAtMostOneSecondAheadHoweverManyAreMade(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0xfffff0)})
	var last objectid.ID
	for range 10 { // 42 million: 2.5 seconds' worth
		last = fill(t, g, last, 4<<20)
		if ahead := last.Time().Sub(clock.Wall()); ahead > time.Second {
			t.Fatalf("%s is %v ahead", last, ahead)
		}
	}
	if p, made := last.Parts(), uint64(0xfffff0+10<<22-1); uint64(p.Seconds)<<24|uint64(p.Counter) != uint64(noon.Unix())<<24+made {
		t.Errorf("%s is the last id: some positions were skipped", last)
	}
	if clock.Slept() < time.Second || clock.Slept() > 2*time.Second {
		t.Errorf("the callers slept for %v", clock.Slept())
	}
}

func TestWhileTheClockIsBackABurstAdvancesByASecondPerSecond(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0)})
	last := fill(t, g, objectid.ID{}, 1)
	clock.Step(-time.Hour)
	clock.Pass(time.Second)
	last = fill(t, g, last, 3<<24) // the ids of three seconds: two are available at once, and one second has passed
	if ahead := last.Time().Sub(noon); ahead > 3*time.Second || clock.Slept() < 900*time.Millisecond || clock.Slept() > 2*time.Second {
		t.Errorf("ids are %v ahead after %v of waiting", ahead, clock.Slept())
	}
}

const full = 1 << 24 // the ids of a second

// loaded steps the clock back by five seconds and makes a second's ids at a time until the clock is at noon
// again, so that the ids are five seconds ahead.
func loaded(t *testing.T, clock *firntest.Clock, g *objectid.Generator) (last objectid.ID) {
	t.Helper()
	last = fill(t, g, last, 1)
	for clock.Step(-5 * time.Second); clock.Wall().Before(noon); {
		last = fill(t, g, last, full)
	}
	if ahead := last.Time().Sub(noon); ahead < 5*time.Second {
		t.Fatalf("ids are only %v ahead", ahead)
	}
	return last
}

func TestIDsWaitForAClockThatIsNoLongerBack(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0)})
	last := fill(t, g, loaded(t, clock, g), 2*full)
	if ahead := last.Time().Sub(clock.Wall()); ahead > time.Second {
		t.Errorf("%s is %v ahead of a clock that has caught up", last, ahead)
	}
}

func TestASecondStepBackBelowWhatTheClockHasShownSinceIsNotWaitedOut(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0)})
	last := loaded(t, clock, g)
	clock.Pass(2 * time.Second)
	last = fill(t, g, last, 1)
	clock.Step(-2 * time.Second)
	slept := clock.Slept()
	fill(t, g, last, full)
	if waited := clock.Slept() - slept; waited > time.Second {
		t.Errorf("the ids of one second took %v", waited)
	}
}
