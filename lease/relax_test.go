package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

func TestARelaxedPoolAdmitsProcessesThatAreNotStrict(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	narrow := func(c *Config) { c.Tolerance = 2 * time.Second }
	strict := func(c *Config) {
		w.shared(c)
		narrow(c)
		c.Window, c.Strict = time.Minute, 80*time.Second
	}
	held := w.start(strict)
	w.mustTake(held, 10)
	before := must(Inspect(ctx, w.store, "default"))
	if _, err := w.try(narrow); !errors.Is(err, ErrPool) {
		t.Fatalf("before: %v", err)
	}
	if had, err := Relax(ctx, w.store, "default"); err != nil || had != 80*time.Second {
		t.Fatalf("%v, %v", had, err)
	}
	after := must(Inspect(ctx, w.store, "default"))
	if after.Strict != 0 || after.Layout != before.Layout || !after.Made.Equal(before.Made) || after.Open != before.Open || len(after.Slots) != len(before.Slots) {
		t.Errorf("%+v became %+v", before, after)
	}

	begun := w.time.Wall()
	other := w.start(narrow)
	if waited := w.time.Wall().Sub(begun); waited > time.Second {
		t.Errorf("a claim waits %v", waited)
	}
	for range 60 { // both go on and are renewed
		w.time.Pass(time.Second)
		for _, l := range []*Lease{held, other} {
			l.turn(ctx)
			w.mustTake(l, 10)
		}
	}

	writes := w.store.Counts().CompareAndSwap
	if had, err := Relax(ctx, w.store, "default"); err != nil || had != 0 || w.store.Counts().CompareAndSwap != writes {
		t.Errorf("again: %v, %v, and %d writes", had, err, w.store.Counts().CompareAndSwap-writes)
	}
	for _, l := range []*Lease{held, other} {
		if err := l.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.time.Pass(time.Second)
	w.mustTake(w.start(strict), 10)
	if p := must(Inspect(ctx, w.store, "default")); time.Duration(p.Strict) != 80*time.Second {
		t.Errorf("one that is strict joined, and the pool waits %v", p.Strict)
	}
}

func TestRelaxReportsItsErrors(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.start(func(c *Config) {
		w.shared(c)
		c.Window, c.Tolerance, c.Strict = time.Minute, 2*time.Second, 80*time.Second
	})
	if _, err := Relax(ctx, w.store, "missing"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a pool that is not: %v", err)
	}
	for outcome, applied := range map[storetest.Outcome]bool{
		storetest.Refuse: false, storetest.FailUnapplied: false, storetest.FailApplied: true,
	} {
		copied := w.mem.Snapshot()
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap {
				return outcome
			}
			return storetest.Pass
		}
		_, err := Relax(ctx, w.store, "default")
		w.store.Script = nil
		if relaxed := must(Inspect(ctx, w.store, "default")).Strict == 0; err == nil || relaxed != applied {
			t.Errorf("%v: %v, and relaxed is %v", outcome, err, relaxed)
		}
		if _, err := Relax(ctx, w.store, "default"); err != nil || must(Inspect(ctx, w.store, "default")).Strict != 0 {
			t.Errorf("%v, and again: %v", outcome, err)
		}
		w.mem.Restore(copied)
	}

	// another process writes the record between Relax's read and write
	first := true
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && first {
			first = false
			e := must(w.mem.Get(ctx, c.Key))
			must(w.mem.CompareAndSwap(ctx, c.Key, e.Revision, e.Value))
		}
		return storetest.Pass
	}
	if had, err := Relax(ctx, w.store, "default"); err != nil || had != 80*time.Second || first {
		t.Errorf("another write in between: %v, %v", had, err)
	}
}

// The fence of a released slot is its holder's last tick, which may be ahead of all clocks.
func TestAnOperatorLeavesTheFenceOfAWorkerThatItsHolderGaveBack(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	ahead := func(c *Config) {
		w.oneWorker(c)
		c.Generator.Clock, c.Generator.From = firn.ClockVirtual, noon.Add(time.Minute)
	}
	gone := w.start(ahead)
	w.mustTake(gone, 10)
	if err := gone.Close(ctx); err != nil {
		t.Fatal(err)
	}
	given := must(Inspect(ctx, w.store, "default")).Slots[0]
	for range 2 {
		slot := must(Reclaim(ctx, w.store, "default", 0, 0, w.time.Wall().Add(10*time.Second)))
		if slot.Fence != given.Fence || slot.Taken || slot.Gone {
			t.Errorf("%+v became %+v", given, slot)
		}
	}
	w.time.Pass(time.Minute)
	w.mustTake(w.start(ahead), 10)
}

// The same where the last tick lies ahead of the time that the operator names, and the first does not.
func TestAnOperatorLeavesTheFenceOfAHolderThatRanAhead(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(t.Context(), ask))
	last := grant.After + 30_000
	must(0, s.Release(t.Context(), grant, last))
	if slot := must(Reclaim(t.Context(), w.mem, "default", 0, 0, w.time.Wall().Add(10*time.Second))); slot.Fence != last {
		t.Errorf("it used ticks up to %d, and the fence is at %d", last, slot.Fence)
	}
}

// A holder that ended is gone at any later time, too: that moves no fence forward.
func TestAGuaranteeForALaterTimeMovesNoFence(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(t.Context(), ask))
	if slot := must(Reclaim(t.Context(), w.mem, "default", 0, 0, w.time.Wall().Add(time.Hour))); slot.Fence != grant.Through || !slot.Gone {
		t.Errorf("the fence was at %d: %+v", grant.Through, slot)
	}
}

// A former holder that released the worker in a store that was set back left a record that does not say when the other began.
func TestAFenceThatAnotherHolderTookBackIsJudgedByItsBeginning(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(t.Context(), ask))
	w.put(theSlot, must(register.Encode(Slot{Owner: "another", After: grant.After, Fence: grant.Through, Free: true, Taken: true, Write: 7})))
	if slot := must(Reclaim(t.Context(), w.mem, "default", 0, 0, noon.Add(-time.Minute))); slot.Fence != grant.Through {
		t.Errorf("it began after %d, and the fence moved from %d to %d", grant.After, grant.Through, slot.Fence)
	}
}
