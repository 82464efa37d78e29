package firntest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

var (
	_ firn.TimeSource = (*firntest.Clock)(nil)

	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// So the code in the comment compiles and does what it says.
func TestThePackagesCommentShowsItsExample(t *testing.T) {
	source, err := os.ReadFile("clock.go")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(source), "\npackage ")
	var shown strings.Builder
	for line := range strings.Lines(comment) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			shown.WriteString("\t" + code)
		}
	}
	if shown.Len() == 0 || !strings.Contains(string(example), shown.String()) {
		t.Errorf("this is not in example_test.go:\n%s", shown.String())
	}
}

func TestOnlyTheWallClockStepsDriftsAndStandsStill(t *testing.T) {
	c := firntest.NewClock(noon)
	for _, s := range []struct {
		what       string
		do         func()
		wall, mono time.Duration // since the beginning
	}{
		{"nothing", func() {}, 0, 0},
		{"a minute passes", func() { c.Pass(time.Minute) }, time.Minute, time.Minute},
		{"an hour back", func() { c.Step(-time.Hour) }, -59 * time.Minute, time.Minute},
		{"forward", func() { c.Step(2 * time.Hour) }, 61 * time.Minute, time.Minute},
		{"set", func() { c.Set(noon.Add(time.Hour)) }, time.Hour, time.Minute},
		{"it stands still", func() { c.Rate(0); c.Pass(time.Minute) }, time.Hour, 2 * time.Minute},
		{"it is half as fast", func() { c.Rate(0.5); c.Pass(time.Minute) }, time.Hour + 30*time.Second, 3 * time.Minute},
		{"it is right again", func() { c.Rate(1); c.Pass(time.Nanosecond) }, time.Hour + 30*time.Second + 1, 3*time.Minute + 1},
		{"a sleep", func() { _ = c.Sleep(context.Background(), time.Second) }, time.Hour + 31*time.Second + 1, 3*time.Minute + time.Second + 1},
	} {
		s.do()
		if wall, mono := c.Wall().Sub(noon), c.Monotonic(); wall != s.wall || mono != s.mono {
			t.Errorf("%s: wall %v, monotonic %v; want %v and %v", s.what, wall, mono, s.wall, s.mono)
		}
	}
	if c.Slept() != time.Second {
		t.Errorf("slept %v", c.Slept())
	}
}

func TestASleepEndsWithItsContext(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	c := firntest.NewClock(noon)
	if err := c.Sleep(ctx, time.Second); err != gone || c.Monotonic() != 0 || c.Slept() != 0 { //nolint:errorlint // the cause itself is promised
		t.Errorf("%v, %v have passed", err, c.Monotonic())
	}
	if err := c.Idle(ctx, time.Second); err != gone { //nolint:errorlint // the cause itself is promised
		t.Error(err)
	}
}

func TestACallIsMadeOnceItsTimeHasPassed(t *testing.T) {
	c := firntest.NewClock(noon)
	var made []string
	c.AfterFunc(2*time.Second, func() {
		made = append(made, "second")
		c.AfterFunc(time.Second, func() { made = append(made, "third") })
	})
	c.AfterFunc(time.Second, func() { made = append(made, "first") })
	c.Step(time.Hour) // moves no timer
	c.Pass(time.Second - 1)
	if len(made) != 0 || c.Timers() != 2 {
		t.Errorf("too early: %v, %d left", made, c.Timers())
	}
	c.Pass(1)
	if len(made) != 1 || c.Timers() != 1 {
		t.Errorf("after a second: %v, %d left", made, c.Timers())
	}
	_ = c.Sleep(t.Context(), time.Second)
	c.Pass(time.Second)
	if len(made) != 3 || made[2] != "third" || c.Timers() != 0 {
		t.Errorf("after three: %v, %d left", made, c.Timers())
	}
}

func TestBackgroundWorkWaitsForTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, looks := firntest.NewClock(noon), 0
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for c.Idle(ctx, 3*time.Second) == nil {
				looks++
			}
			looks = -1
		}()
		for want, pass := range []time.Duration{0, 3 * time.Second, 3 * time.Second} {
			c.Pass(pass)
			if synctest.Wait(); looks != want || c.Monotonic() != time.Duration(want)*3*time.Second {
				t.Errorf("%d looks, want %d; %v have passed", looks, want, c.Monotonic())
			}
		}
		cancel()
		if synctest.Wait(); looks != -1 {
			t.Error("it waits on after its end")
		}
	})
}

// The race detector sees the rest.
func TestManyMayUseOneClock(t *testing.T) {
	c := firntest.NewClock(noon)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				c.AfterFunc(time.Millisecond, func() {})
				_ = c.Sleep(t.Context(), time.Millisecond)
				c.Step(time.Millisecond)
				c.Rate(1)
				c.Wall()
				c.Slept()
			}
		})
	}
	all.Wait()
	if c.Monotonic() != 800*time.Millisecond || c.Wall() != noon.Add(1600*time.Millisecond) || c.Timers() != 0 {
		t.Errorf("%v have passed, the wall clock shows %v, %d timers are left", c.Monotonic(), c.Wall(), c.Timers())
	}
}

// Whatever the steps in which time passes, nothing of the rate is rounded away: waits of a nanosecond would never end.
func TestARateIsNotLostInSmallSteps(t *testing.T) {
	for _, rate := range []float64{0.5, 0.9995, 1.0005} {
		clock := firntest.NewClock(time.Unix(0, 0))
		clock.Rate(rate)
		for range 1_000_000 {
			clock.Pass(time.Nanosecond)
		}
		if got, want := clock.Wall().Sub(time.Unix(0, 0)), time.Duration(rate*float64(time.Millisecond)); (got - want).Abs() > 1 {
			t.Errorf("at rate %v a millisecond shows %v, want %v", rate, got, want)
		}
	}
}

func TestIdleLeavesNoTimer(t *testing.T) {
	clock := firntest.NewClock(time.Unix(0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := clock.Idle(ctx, time.Second); !errors.Is(err, context.Canceled) || clock.Timers() != 0 {
		t.Errorf("%v, %d timers", err, clock.Timers())
	}
}

func TestASleepOfLessThanNothingEndsAtOnce(t *testing.T) {
	clock := firntest.NewClock(time.Unix(0, 0))
	for _, d := range []time.Duration{0, -time.Second} {
		if err := clock.Sleep(t.Context(), d); err != nil || clock.Slept() != 0 || !clock.Wall().Equal(time.Unix(0, 0)) {
			t.Errorf("%v: %v, slept %v", d, err, clock.Slept())
		}
	}
}
