package firn_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// Check is for servers that say whether they can issue, without requests.
func TestCheckReturnsTheErrorOfTheNextCall(t *testing.T) {
	for chain, want := range map[string]error{
		"refuse": firn.ErrClockBack, "wait 9s, refuse": firn.ErrClockBack, "wait 11s": nil, "history 2000": firn.ErrClockBack,
		"history 20000": nil, "ahead 5": firn.ErrClockBack, "ahead 20000": nil, "switch": nil,
	} {
		r := newRig(t, "41/0/4/6", chain, firn.StartZero)
		r.time.Pass(15 * time.Second) // the grant begins before the time to which the clock goes back
		if err := r.take(1); err != nil {
			t.Fatal(err)
		}
		before := r.gen.State()
		if err := r.gen.Check(); err != nil {
			t.Errorf("%s: %v", chain, err)
		}
		r.time.Step(-10 * time.Second)
		slept := r.time.Slept()
		if err := r.gen.Check(); !errors.Is(err, want) || r.workers != 0 || r.time.Slept() != slept || r.gen.State() != before {
			t.Errorf("%s: 10s back: %v, %+v", chain, err, r.gen.State())
		}
		r.time.Step(10 * time.Second)
		if err := r.gen.Check(); err != nil {
			t.Errorf("%s: the clock has caught up: %v", chain, err)
		}
	}
	g, clock, _ := onLease(t, "refuse", 0, nil)
	clock.Pass(time.Second)
	if err := g.Check(); !errors.Is(err, firn.ErrFence) {
		t.Errorf("past the fence: %v", err)
	}
	g.Stop()
	if err := g.Check(); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestCheckRemembersASwitchThatFailed(t *testing.T) {
	errNoWorker := errors.New("no worker left")
	free := false
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	g, clock := switching(t, "switch, refuse", func(ctx context.Context, from firn.Tick) (firn.Grant, error) {
		if ctx.Err() != nil || free {
			return firn.Grant{Worker: 1, After: from - 1, Through: from + 1000}, ctx.Err()
		}
		return firn.Grant{}, errNoWorker
	})
	clock.Step(-time.Minute)
	for _, c := range []struct {
		ctx  context.Context
		free bool
		want error
	}{
		{gone, false, nil}, {t.Context(), false, errNoWorker}, {gone, false, errNoWorker}, {t.Context(), true, nil},
	} {
		free = c.free
		_, err := g.Next(c.ctx)
		if got := g.Check(); !errors.Is(got, c.want) {
			t.Errorf("after %v: %v, not %v", err, got, c.want)
		}
	}
}

// Check decides on a copy: calls between others change no id.
func TestCheckChangesNoLaterID(t *testing.T) {
	for _, chain := range append(append([]string{}, ordered...), unordered...) {
		for seed := range uint64(20) {
			var ids [2][]firn.ID
			for i := range ids {
				random := rand.New(rand.NewPCG(seed, 9))
				r := newRigOf(t, "41/0/6/3", chain, firn.StartZero, rand.New(rand.NewPCG(seed, 7)), 0)
				for range 200 {
					switch random.IntN(8) {
					case 0:
						r.time.Step(time.Duration(random.IntN(40)-30) * time.Millisecond)
					default:
						r.time.Pass(time.Duration(random.IntN(2000)) * time.Microsecond)
					}
					can := true
					if i == 1 {
						can = r.gen.Check() == nil
					}
					err := r.take(1 + random.IntN(12))
					if ids[i] = append(ids[i], r.last); i == 1 && !can && err == nil {
						t.Fatalf("%s, seed %d: Check says that no id can be issued", chain, seed)
					}
				}
			}
			if !reflect.DeepEqual(ids[0], ids[1]) {
				t.Fatalf("%s, seed %d: the ids differ", chain, seed)
			}
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
