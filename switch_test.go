package firn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// switching returns a generator that has issued an id, and its clock.
func switching(t *testing.T, chain string, other func(ctx context.Context, from firn.Tick) (firn.Grant, error)) (*firn.Generator, *firntest.Clock) {
	t.Helper()
	clock := newClock()
	g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/6/3"), Clock: firn.ClockWall, Rollback: parseChain(t, chain), Time: clock, Switch: other})
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, clock
}

// Callers test for the errors of their Switch function.
func TestTheErrorWrapsWhatSwitchReturned(t *testing.T) {
	errNoWorker := errors.New("no worker left")
	for _, chain := range []string{"switch", "ahead 5, wait 1ms, switch, refuse", "switch, ahead 5"} {
		g, clock := switching(t, chain, func(context.Context, firn.Tick) (firn.Grant, error) { return firn.Grant{}, errNoWorker })
		clock.Step(-time.Minute)
		_, err := g.Next(t.Context())
		if !errors.Is(err, errNoWorker) || !errors.Is(err, firn.ErrClockBack) {
			t.Errorf("%s: %T %v", chain, err, err)
		}
		if !strings.HasSuffix(chain, "ahead 5") && !strings.Contains(err.Error(), "switch: no worker left") {
			t.Errorf("%s: it does not say why: %v", chain, err)
		}
	}
}

func TestTheErrorOfASwitchThatItsContextEndsMatchesTheCause(t *testing.T) {
	errGone := errors.New("the caller is gone")
	for _, chain := range []string{"switch", "switch, ahead 100000"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		g, clock := switching(t, chain, func(ctx context.Context, _ firn.Tick) (firn.Grant, error) {
			cancel(errGone)
			return firn.Grant{}, ctx.Err()
		})
		clock.Step(-time.Minute)
		id, err := g.Next(ctx)
		if strings.Contains(chain, "ahead") { // the policy ahead can serve
			if err != nil {
				t.Errorf("%s: %v", chain, err)
			}
		} else if !errors.Is(err, errGone) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: id %d, %T %v", chain, id, err, err)
		}
	}
}

// A new worker could not issue ids either.
func TestSwitchIsNotCalledForATimeBeforeTheEpoch(t *testing.T) {
	g, clock := switching(t, "switch", func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		t.Errorf("another worker was asked for, from %d on", from)
		return firn.Grant{Worker: 1, After: -1, Through: 1 << 40}, nil
	})
	clock.Set(time.Unix(0, 0))
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) {
		t.Errorf("id %d, %v", id, err)
	}
}

// The chain has no switch that the context could have ended.
func TestAClockThatIsBackIsReportedEvenIfTheCallersContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g, clock := switching(t, "refuse", nil)
	clock.Step(-time.Minute)
	if id, err := g.Next(ctx); !errors.Is(err, firn.ErrClockBack) {
		t.Errorf("id %d, %v", id, err)
	}
}

// waiting is a time source that implements the wait for a switch itself.
type waiting struct {
	*firntest.Clock
	wait func(ctx context.Context, done <-chan struct{}) error
}

func (w *waiting) Wait(ctx context.Context, done <-chan struct{}) error { return w.wait(ctx, done) }

// Switch is called once, however many callers need it.
func TestCallersWaitForTheSwitchInProgress(t *testing.T) {
	errGone := errors.New("the caller is gone")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	var (
		g     *firn.Generator
		over  []<-chan struct{}
		calls int
	)
	clock := &waiting{newClock(), func(_ context.Context, done <-chan struct{}) error {
		over = append(over, done)
		return errGone
	}}
	g = newGenerator(t, firn.Config{
		Layout: seconds, Clock: firn.ClockWall, Rollback: parseChain(t, "switch"), Time: clock,
		Switch: func(_ context.Context, from firn.Tick) (firn.Grant, error) {
			if calls++; calls == 1 {
				for range 2 { // other callers
					if id, err := g.Next(gone); !errors.Is(err, errGone) {
						t.Errorf("while it is under way: id %d, %v", id, err)
					}
				}
			}
			return firn.Grant{Worker: 6, After: from - 1, Through: seconds.MaxTick()}, nil
		},
	})
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(-time.Minute)
	if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Worker != 6 || calls != 1 || len(over) != 2 {
		t.Fatalf("id %d, %v; %d switches, %d have waited", id, err, calls, len(over))
	}
	for i, done := range over {
		select {
		case <-done:
		default:
			t.Errorf("other caller %d waits on after the switch", i)
		}
	}
}

// The time source does not implement the wait itself.
func TestAWaitForASwitchEndsWithItsCaller(t *testing.T) {
	errGone := errors.New("the caller is gone")
	gone, cancel := context.WithCancelCause(context.Background())
	cancel(errGone)
	var g *firn.Generator
	g, clock := switching(t, "switch", func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		if id, err := g.Next(gone); !errors.Is(err, errGone) || !errors.Is(err, context.Canceled) {
			t.Errorf("while it is under way: id %d, %v", id, err)
		}
		return firn.Grant{Worker: 6, After: from - 1, Through: 1 << 40}, nil
	})
	clock.Step(-time.Minute)
	if id, err := g.Next(t.Context()); err != nil || partsOf(g.Layout(), id).Worker != 6 {
		t.Errorf("id %d, %v", id, err)
	}
}

// awaited is a context that reports when a caller waits for its end.
type awaited struct {
	context.Context
	asked func()
}

func (a *awaited) Done() <-chan struct{} {
	a.asked()
	return a.Context.Done()
}

func TestACallThatWaitedForAnothersFailedSwitchMaySwitchItself(t *testing.T) {
	type answer struct {
		id  firn.ID
		err error
	}
	var (
		g       *firn.Generator
		calls   int
		waits   = make(chan struct{})
		answers = make(chan answer, 1)
	)
	ctx := &awaited{context.Background(), sync.OnceFunc(func() { close(waits) })}
	g, clock := switching(t, "switch", func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		if calls++; calls > 1 {
			return firn.Grant{Worker: 6, After: from - 1, Through: 1 << 40}, nil
		}
		go func() {
			id, err := g.Next(ctx)
			answers <- answer{id, err}
		}()
		select {
		case <-waits:
		case a := <-answers:
			answers <- a
			t.Error("another caller does not wait")
		}
		return firn.Grant{}, errors.New("no worker left")
	})
	clock.Step(-time.Minute)
	// The other one may have switched before this one returns.
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) && (err != nil || partsOf(g.Layout(), id).Worker != 6) {
		t.Errorf("the call whose switch failed: id %d, %v", id, err)
	}
	if a := <-answers; a.err != nil || partsOf(g.Layout(), a.id).Worker != 6 || calls != 2 {
		t.Errorf("the call that waited for it: id %d, %v, after %d switches", a.id, a.err, calls)
	}
}

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
