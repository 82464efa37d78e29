package firn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// Meanwhile the clock is right for a moment, and other callers use up ticks. Then the grant would repeat their ids.
func TestASwitchToTheWorkerInUseKnowsTheIDsOfOtherCalls(t *testing.T) {
	for begins, refused := range map[firn.Tick]bool{4: true, 5: false} { // after the tick of the first id
		var (
			g     *firn.Generator
			first firn.Tick
		)
		clock := newClock()
		first, err := seconds.Tick(noon)
		if err != nil {
			t.Fatal(err)
		}
		g, err = firn.NewLeased(firn.Config{
			Layout: seconds, Clock: firn.ClockWall, Ahead: 2 * time.Second, Rollback: parseChain(t, "switch"), Start: firn.StartZero, Time: clock,
			Switch: func(ctx context.Context, _ firn.Tick) (firn.Grant, error) {
				clock.Step(10 * time.Second)
				clock.Pass(3 * time.Second)
				for range 12 { // of two ticks, of which only the first call asks the clock
					if _, err := g.Next(ctx); err != nil {
						t.Error(err)
					}
				}
				clock.Step(-13 * time.Second)
				return firn.Grant{Worker: 5, After: first + begins - 1, Through: first + 1000}, nil
			},
		}, firn.Grant{Worker: 5, After: first - 1, Through: first + 1000})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(-10 * time.Second)
		id, err := g.Next(t.Context())
		want := fmt.Sprintf("Config.Switch returned worker 5, which is in use, from tick %d on, and its ids go up to %d", first+4, first+4)
		var back *firn.ClockBackError
		if refused && (!errors.As(err, &back) || !errors.Is(err, firn.ErrRange) || back.Switch == nil || back.Switch.Error() != firn.ErrRange.Error()+": "+want) {
			t.Errorf("%d, %v, not %s", id, err, want)
		}
		if !refused && (err != nil || g.State().Last != first+5) {
			t.Errorf("%d, %v, %+v", id, err, g.State())
		}
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

// sleepless is a clock that cannot wait.
type sleepless struct {
	*firntest.Clock
	err error
}

func (s sleepless) Sleep(ctx context.Context, _ time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.err
}

func TestTheErrorOfAWait(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	left, leave := context.WithCancelCause(t.Context())
	leave(errors.New("the caller has left"))
	for want, ctx := range map[string]context.Context{
		"firn: wait for an id: no timer":                              t.Context(),
		"firn: wait for an id: context canceled":                      gone,
		"firn: wait for an id: context canceled: the caller has left": left,
	} {
		g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/10/0"), Clock: firn.ClockWall, Start: firn.StartZero, Time: sleepless{newClock(), errors.New("no timer")}})
		var err error
		for range 3 { // of which one at least waits
			if _, e := g.Next(ctx); e != nil {
				err = e
			}
		}
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestCheckKnowsTheIDsThatAreUsed(t *testing.T) {
	g, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockVirtual, From: seconds.Epoch(), Start: firn.StartZero}, firn.Grant{Worker: 1, After: -1, Through: 1})
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	for ; ids < 100; ids++ {
		check := g.Check()
		if _, err := g.Next(t.Context()); errors.Is(err, firn.ErrFence) != errors.Is(check, firn.ErrFence) {
			t.Fatalf("after %d ids: %v, and then %v", ids, check, err)
		} else if err != nil {
			break
		}
	}
	if ids < 8 || ids > 16 {
		t.Errorf("%d ids up to the fence", ids)
	}
}

// A switch that succeeds counts, whoever waits for it.
func TestCheckForgetsAFailedSwitchAfterOneWhoseCallerHasLeft(t *testing.T) {
	worker := int64(0)
	g, clock := switching(t, "switch, refuse", func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		if worker == 0 {
			return firn.Grant{}, errors.New("no worker left")
		}
		return firn.Grant{Worker: worker, After: from - 1, Through: from + 100_000}, nil
	})
	clock.Step(-time.Minute)
	if _, err := g.Next(t.Context()); err == nil || g.Check() == nil {
		t.Fatal("the switch does not fail")
	}
	worker = 1
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Next(gone); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	clock.Step(-time.Minute)
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

func TestAHaltOfAnotherWorkerDoesNothing(t *testing.T) {
	g, _, _ := onLease(t, "refuse", 1000, nil)
	before := g.State()
	if last, halted := g.Halt(4); last != 0 || halted || g.State() != before {
		t.Errorf("%d, %v, %+v", last, halted, g.State())
	}
}
