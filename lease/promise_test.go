package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

// What an attacker did to the store, its clocks and its holders to have ids made twice.

// oneWorker is a pool of one worker over the network.
func (w *world) oneWorker(c *Config) {
	w.shared(c)
	c.Generator.Layout = layout("41/0/0/12")
}

// unconfirmed makes the world's store apply all writes from now on without confirming them,
// like a primary that was cut off from its replicas.
func (w *world) unconfirmed() {
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap {
			return storetest.FailApplied
		}
		return storetest.Pass
	}
}

func TestAHolderCutOffWithAnOldPrimaryEndsAtItsFence(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.oneWorker)
	w.mustTake(holder, 10)
	// The store splits: the holder stays on the side that can confirm nothing.
	other := memstore.New(nil)
	other.Restore(w.mem.Snapshot())
	w.unconfirmed()
	var newcomer *Lease
	for range 100 { // looks, two windows and more
		w.time.Pass(3 * time.Second)
		holder.turn(context.Background())
		if err := w.take(holder, 10); err != nil && !errors.Is(err, firn.ErrFence) {
			t.Fatal(err)
		}
		if newcomer == nil {
			var err error
			newcomer, err = w.try(w.oneWorker, func(c *Config) { c.Store = remote{other, w.time.Wall, nil} })
			if err != nil && !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			continue
		}
		newcomer.turn(context.Background())
		w.mustTake(newcomer, 10)
	}
	if newcomer == nil {
		t.Fatal("the worker was not granted on the new side")
	}
	if holder.State().Err == nil {
		t.Error("the holder says nothing of its renewals")
	}
}

func TestNothingIsGrantedByAStoreThatConfirmsNothing(t *testing.T) {
	w := newWorld(t)
	first := w.start(w.oneWorker)
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.time.Pass(time.Second)
	w.unconfirmed()
	if l, err := w.try(w.oneWorker); err == nil {
		t.Errorf("granted %+v", l.State())
	}
	// Once the store confirms again, the slot has a claim that no process holds.
	w.store.Script = nil
	w.time.Pass(2 * time.Minute)
	w.mustTake(w.start(w.oneWorker), 10)
}

func TestAWrongClockDoesNotKeepAHolderFromItsSlot(t *testing.T) {
	w := newWorld(t)
	clock := &skewed{machine: w.time}
	holder := w.start(w.oneWorker, func(c *Config) { c.Generator.Time = clock })
	w.mustTake(holder, 10)
	clock.offset = 20 * time.Second // renewals are refused from here on
	w.time.Pass(25 * time.Second)
	holder.turn(context.Background())
	if !errors.Is(holder.State().Err, ErrClock) {
		t.Fatalf("a clock that is 20s ahead: %v", holder.State().Err)
	}
	w.mem.Restore(nil)
	holder.turn(context.Background())
	p, err := Inspect(context.Background(), w.mem, "default")
	if err != nil || len(p.Slots) != 1 || p.Open {
		t.Fatalf("after a wipe: %+v, %v; want its slot, in a pool that is not open", p, err)
	}
	if _, err := w.try(w.oneWorker); !errors.Is(err, ErrFull) {
		t.Errorf("a newcomer: %v, want a full pool", err)
	}
}

func TestACopyOlderThanAWindowGrantsNothingThatIsHeld(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.oneWorker)
	copied := w.mem.Snapshot()
	for range 100 {
		w.time.Pass(3 * time.Second)
		holder.turn(context.Background())
		w.mustTake(holder, 10)
	}
	w.mem.Restore(copied) // its record says that the pool is open, and its fence has long passed
	join := func() error {
		_, err := w.try(w.oneWorker, func(c *Config) {
			c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() {
				w.time.Pass(3 * time.Second)
				holder.turn(context.Background())
			}}
		})
		return err
	}
	if err := join(); !errors.Is(err, ErrFull) {
		t.Errorf("a newcomer: %v, want a full pool", err)
	}
	w.mustTake(holder, 10)
}

// Holders that find their slots gone must write them: a wait during which the store refuses writes does not count.
func TestAWaitInWhichTheStoreRefusesWritesBeginsAgain(t *testing.T) {
	w := newWorld(t)
	began := w.time.Wall()
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if since := w.time.Wall().Sub(began); c.Op == storetest.OpCompareAndSwap && since > 4*time.Second && since < 9*time.Second {
			return storetest.Refuse
		}
		return storetest.Pass
	}
	w.start(w.shared)
	if took := w.time.Wall().Sub(began); took < 8*time.Second+grace { // it tries each 2 s
		t.Errorf("it waited %v, want %v from the end of the refusals", took, grace)
	}
}

func TestASlotNeverGivenBackIsWaitedForOnce(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	two := func(c *Config) { w.shared(c); c.Generator.Layout, c.Log = layout("41/0/1/12"), logTo(&log) }
	w.start(two) // and crashes
	w.time.Pass(2 * time.Minute)
	for i, want := range []time.Duration{grace, 0, 0} {
		began := w.time.Wall()
		l := w.start(two)
		if took := w.time.Wall().Sub(began); took < want || took > want+time.Second {
			t.Errorf("newcomer %d waited %v, want %v", i, took, want)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.time.Pass(time.Minute)
	}
	for _, why := range []string{"the pool is new, or its store may have forgotten holders", "a worker was never returned, and no fence lies ahead: its store may have been set back"} {
		if n := strings.Count(log.String(), fmt.Sprintf("level=INFO msg=\"waiting before a worker is granted\" pool=default for=12s because=%q", why)); n != 1 {
			t.Errorf("a wait because %s is logged %d times:\n%s", why, n, log.String())
		}
	}
}

// The grace is no multiple of the time after which the pool is read again.
func TestANewcomerWaitsNoLongerThanTheGrace(t *testing.T) {
	w := newWorld(t)
	began := w.time.Monotonic()
	l := w.start(w.shared, func(c *Config) { c.Look = 2500 * time.Millisecond })
	if took, want := w.time.Monotonic()-began, graceOf(l.cfg.Look, time.Millisecond); took != want || want%patience(l.cfg.Look) == 0 {
		t.Errorf("it waited %v, want %v", took, want)
	}
}

func TestInAnotherLifeOfTheStoreHoldersAreWaitedFor(t *testing.T) {
	w := newWorld(t)
	life := "first"
	in := func(c *Config) { w.oneWorker(c); c.Store = remote{w.store, w.time.Wall, &life} }
	holder := w.start(in)
	if err := holder.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.time.Pass(time.Second)
	free := w.mem.Snapshot()
	holder = w.start(in)
	w.mustTake(holder, 10)
	// A replica without the latest claim is promoted.
	w.mem.Restore(free)
	life = "second"
	began := w.time.Wall()
	newcomer, err := w.try(in, func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { holder.turn(context.Background()) }}
	})
	if took := w.time.Wall().Sub(began); took < grace {
		t.Errorf("a newcomer was let in after %v: %v", took, err)
	}
	for range 60 { // one of them has the worker
		w.time.Pass(3 * time.Second)
		took := 0
		for _, l := range []*Lease{holder, newcomer} {
			if l == nil {
				continue
			}
			l.turn(context.Background())
			if err := w.take(l, 10); err == nil {
				took++
			} else if !errors.Is(err, firn.ErrFence) {
				t.Fatal(err)
			}
		}
		if took > 1 {
			t.Fatal("both have it")
		}
	}
	// The life is known now, and no newcomer waits for it again.
	began = w.time.Wall()
	if _, err := w.try(in); !errors.Is(err, ErrFull) || w.time.Wall().Sub(began) > time.Second {
		t.Errorf("another newcomer: %v after %v", err, w.time.Wall().Sub(began))
	}
}

func TestNewcomersWaitAsLongAsTheSlowestHolderTakesToNotice(t *testing.T) {
	w := newWorld(t)
	slow := func(c *Config) {
		w.oneWorker(c)
		c.Window, c.Look = 10*time.Minute, time.Minute
	}
	holder := w.start(slow)
	if p, err := Inspect(context.Background(), w.mem, "default"); err != nil || time.Duration(p.Grace) < time.Minute+4*maxPatience {
		t.Fatalf("a look of a minute: grace %v, %v", p.Grace, err)
	}
	w.mustTake(holder, 10)
	w.mem.Restore(nil)
	began := w.time.Wall()
	newcomer, err := w.try(slow, func(c *Config) {
		c.Generator.Time = &stepping{during{w.time, 0, func() {
			if w.time.Wall().Sub(began) >= time.Minute {
				holder.turn(context.Background())
			}
		}}}
	})
	if !errors.Is(err, ErrFull) || w.time.Wall().Sub(began) < time.Minute {
		t.Errorf("a newcomer, after %v: %v, %v", w.time.Wall().Sub(began), newcomer, err)
	}
	// One whose looks are short would not wait for the others if the store forgot the pool.
	for _, shorter := range []func(*Config){
		func(c *Config) { c.Look = 0 },
		func(c *Config) { c.Look = time.Second },
		func(c *Config) { c.Look = time.Minute - 1 },
	} {
		if _, err := w.try(slow, shorter); !errors.Is(err, ErrPool) || !strings.Contains(err.Error(), "has a grace of 1m9s") {
			t.Errorf("another grace: %v", err)
		}
	}
}

// A hanging store answers no read until its context ends.
type hanging struct {
	store.Store
	hangs bool
	calls int
}

func (*hanging) Traits() store.Traits { return store.Traits{} }

func (h *hanging) Get(ctx context.Context, key string) (store.Entry, error) {
	if h.calls++; h.hangs {
		<-ctx.Done()
		return store.Entry{}, store.ContextError(ctx)
	}
	return h.Store.Get(ctx, key)
}

func TestALookThatHangsEndsAfterItsPatienceAndIsMadeAgainSoon(t *testing.T) {
	w := newWorld(t)
	h := &hanging{Store: w.store}
	l := w.start(func(c *Config) { c.Store, c.Look = h, minLook })
	h.hangs = true
	began := time.Now()
	if l.turn(context.Background()) {
		t.Error("a look without an answer counts as one")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it ended after %v", took)
	}
}

// A slow clock answers late, with the time of when the question arrived.
type slowClock struct {
	remote
	leg time.Duration
	on  *machine
}

func (s slowClock) Traits() store.Traits { return store.Traits{Clock: s} }

func (s slowClock) Now(ctx context.Context) (time.Time, error) {
	now, err := s.remote.Now(ctx)
	s.on.Pass(s.leg)
	return now, err
}

func TestAClockCountsAsCheckedOnlyAsFarAsTheAnswerTells(t *testing.T) {
	for _, c := range []struct {
		leg, off time.Duration
		ok       bool
	}{
		{0, 900 * time.Millisecond, true},
		{0, 1100 * time.Millisecond, false},
		{200 * time.Millisecond, 400 * time.Millisecond, true},
		{time.Second, 900 * time.Millisecond, false}, // it may be 1.4s off
		{4 * time.Second, 0, false},
	} {
		w := newWorld(t)
		_, err := w.try(w.oneWorker, func(cfg *Config) {
			cfg.Tolerance = time.Second
			cfg.Store = slowClock{remote{w.store, w.time.Wall, nil}, c.leg, w.time}
			cfg.Generator.Time = skewed{w.time, c.off}
		})
		if (err == nil) != c.ok {
			t.Errorf("a clock %v off, an answer of %v: %v", c.off, c.leg, err)
		}
		if err != nil && !errors.Is(err, ErrClock) && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a clock %v off, an answer of %v: %v", c.off, c.leg, err)
		}
	}
}

func TestInAStrictPoolTwoClocksMayDifferByTwiceTheTolerance(t *testing.T) {
	const tolerance = 2 * time.Second
	for _, unit := range []string{"1ms", "1s"} {
		for _, offsets := range [][2]time.Duration{{tolerance, -tolerance}, {-tolerance, tolerance}, {tolerance, tolerance}} {
			w := newWorld(t)
			strict := func(offset time.Duration) func(*Config) {
				return func(c *Config) {
					w.shared(c)
					c.Generator.Layout = layout("41/0/0/8,unit=" + unit)
					c.Generator.Time = skewed{w.time, offset}
					c.Generator.Ahead = -1
					c.Window, c.Tolerance = 40*time.Second, tolerance
					c.Strict = c.Window + c.Generator.Lead() + 4*tolerance + 2*c.Generator.Layout.Unit()
				}
			}
			cutOff := w.start(strict(offsets[0])) // it never looks again
			w.mustTake(cutOff, 10)
			p := must(Inspect(context.Background(), w.mem, "default"))
			w.mem.Delete(slotKey("default", p.Layout, 0, 0))
			newcomer := w.start(strict(offsets[1]))
			for range 400 {
				w.time.Pass(200 * time.Millisecond)
				w.mustTake(newcomer, 5)
				newcomer.turn(context.Background())
				if err := w.take(cutOff, 5); err != nil && !errors.Is(err, firn.ErrFence) {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestAStrictPoolRefusesFencesBeyondItsWait(t *testing.T) {
	w := newWorld(t)
	strict := func(c *Config) {
		w.shared(c)
		c.Window, c.Tolerance, c.Strict = time.Minute, 2*time.Second, 80*time.Second
	}
	l := w.start(strict)
	key := slotKey("default", l.gen.Layout(), 0, 1023)
	far := must(register.Encode(Slot{Fence: l.State().Fence + 3_600_000, Owner: "somebody"}))
	must(w.mem.CompareAndSwap(context.Background(), key, 0, far))
	if _, err := w.try(strict); !errors.Is(err, ErrPool) || !strings.Contains(err.Error(), "worker 1023") || strings.Contains(err.Error(), "tries") {
		t.Errorf("a fence an hour ahead: %v", err)
	}
	// A process that was suspended after it had read the clock sees fences far ahead once.
	lists := 0
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpList {
			if lists++; lists == 2 {
				w.mem.Delete(key)
			}
		}
		return storetest.Pass
	}
	w.start(strict)
	if lists != 2 {
		t.Errorf("it read the pool %d times", lists)
	}
}

func TestAHolderHaltedBesideASwitchHasAWorkerAgain(t *testing.T) {
	w := newWorld(t)
	l := w.start(func(c *Config) {
		small(c)
		c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, firn.Rollback{firn.SwitchWorker()}
	})
	w.mustTake(l, 10)
	lost := l.grant
	w.time.Step(-time.Second)
	w.mustTake(l, 1) // switches
	l.gen.Halt(lost.Worker)
	w.time.Pass(time.Second)
	w.mustTake(l, 10)
}
