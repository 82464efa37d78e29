package segment_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

// orders opens segments, and the name orders of them.
func orders(t *testing.T, cfg segment.Config) (*segment.Segments, *segment.Namespace) {
	t.Helper()
	all, err := segment.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n, err := all.Namespace("orders")
	if err != nil {
		t.Fatal(err)
	}
	return all, n
}

// A process that fetches no range for a while still keeps others from its ids, if it looks.
func TestALookRaisesACounterThatWasSetBack(t *testing.T) {
	for name, c := range map[string]struct {
		stride  int64
		forget  func(mem *memstore.Store, older memstore.Snapshot)
		changes int64
	}{
		"as it was":     {1, func(*memstore.Store, memstore.Snapshot) {}, 0},
		"wiped":         {1, func(mem *memstore.Store, _ memstore.Snapshot) { mem.Restore(nil) }, 1},
		"an older copy": {1, func(mem *memstore.Store, older memstore.Snapshot) { mem.Restore(older) }, 1},
		"of a stripe":   {4, func(mem *memstore.Store, _ memstore.Snapshot) { mem.Restore(nil) }, 1},
		"all but an id": {1, func(mem *memstore.Store, _ memstore.Snapshot) { mem.Restore(nil); raiseTo(t, mem, 29) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memstore.New(nil)
			faulty := storetest.NewFaulty(mem)
			cfg := segment.Config{Store: faulty, MinStep: 10, MaxStep: 10, Ahead: 1e-9, Chain: 1, Stride: c.stride}
			_, here := orders(t, cfg)
			if err := here.Look(t.Context()); err != nil || faulty.Counts().Get != 0 {
				t.Errorf("before it had an id: %v, %d reads", err, faulty.Counts().Get)
			}
			older := mem.Snapshot()
			var last uint64
			for i := range 25 { // of the third range, and no other is due
				id, err := here.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if last = uint64(id); i == 0 {
					older = mem.Snapshot()
				}
			}
			before, err := segment.ReadCounter(t.Context(), mem, "orders")
			if err != nil {
				t.Fatal(err)
			}
			c.forget(mem, older)
			writes, reads := faulty.Counts().CompareAndSwap, faulty.Counts().Get
			for range 2 {
				if err := here.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			after, err := segment.ReadCounter(t.Context(), mem, "orders")
			if err != nil || after != before {
				t.Errorf("the counter is at %+v, %v; it was at %+v", after, err, before)
			}
			if n := here.State().SetBacks; n != c.changes || int64(faulty.Counts().CompareAndSwap-writes) != c.changes {
				t.Errorf("%d set backs, %d writes", n, faulty.Counts().CompareAndSwap-writes)
			}
			if n := faulty.Counts().Get - reads; c.changes == 0 && n != 2 {
				t.Errorf("%d reads for two looks that found all as it was", n)
			}
			_, other := orders(t, cfg)
			if id, err := other.Next(t.Context()); err != nil || uint64(id) <= last {
				t.Errorf("another process makes %d, %v; %d was made here", id, err, last)
			}
		})
	}
}

func raiseTo(t *testing.T, s store.Store, last firn.ID) {
	t.Helper()
	if _, err := segment.RaiseCounter(t.Context(), s, "orders", last, segment.Stripe{Stride: 1}); err != nil {
		t.Fatal(err)
	}
}

// A look whose read fails says so, though the store answers again a moment later. What another program writes while a look
// raises the counter is left alone.
func TestALookThatMeetsAFaultInTheMiddleSaysSo(t *testing.T) {
	mem := memstore.New(nil)
	faulty := storetest.NewFaulty(mem)
	_, n := orders(t, segment.Config{Store: faulty})
	if _, err := n.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	gets := 0
	faulty.Script = func(storetest.Call) storetest.Outcome {
		if gets++; gets == 1 {
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	if err := n.Look(t.Context()); err == nil || gets != 1 {
		t.Errorf("%v after %d calls", err, gets)
	}
	mem.Restore(nil)
	gets = 0
	faulty.Script = func(storetest.Call) storetest.Outcome {
		if gets++; gets == 2 { // after the look has found that the counter is gone
			if _, err := mem.CompareAndSwap(t.Context(), register.CounterKey("orders"), 0, []byte("mine")); err != nil {
				t.Error(err)
			}
		}
		return storetest.Pass
	}
	if err := n.Look(t.Context()); !errors.Is(err, store.ErrForeign) {
		t.Errorf("a record of somebody else: %v", err)
	}
	if e, err := mem.Get(t.Context(), register.CounterKey("orders")); err != nil || string(e.Value) != "mine" {
		t.Errorf("%s, %v", e.Value, err)
	}
}

// What a look writes grants nothing: whoever finds it takes no range back.
func TestALookGrantsNoIDs(t *testing.T) {
	mem := memstore.New(nil)
	_, n := orders(t, segment.Config{Store: mem})
	if _, err := n.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	mem.Restore(nil)
	if err := n.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	var record struct{ Step int64 }
	if e, err := mem.Get(t.Context(), register.CounterKey("orders")); err != nil || json.Unmarshal(e.Value, &record) != nil || record.Step != 0 {
		t.Errorf("%s, %v", e.Value, err)
	}
}

// A loss is counted although the counter could not be raised, and another one beside it.
func TestEachLossIsCountedWhileTheStoreTakesNoWrites(t *testing.T) {
	mem := memstore.New(nil)
	faulty := storetest.NewFaulty(mem)
	_, n := orders(t, segment.Config{Store: faulty, MinStep: 10, MaxStep: 10, Ahead: 1e-9})
	if _, err := n.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	faulty.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap {
			return storetest.Refuse
		}
		return storetest.Pass
	}
	for losses := int64(1); losses <= 2; losses++ {
		mem.Restore(nil)
		raiseTo(t, mem, firn.ID(losses))
		for range 2 {
			if err := n.Look(t.Context()); err == nil || n.State().SetBacks != losses {
				t.Errorf("%v, %d set backs, want %d", err, n.State().SetBacks, losses)
			}
		}
	}
}

// A source of one's own keeps its counters itself.
func TestALookAtASourceOfOnesOwnDoesNothing(t *testing.T) {
	_, n := orders(t, segment.Config{Source: listed(segment.Range{First: 1, Count: 5, Stride: 1})})
	if err := n.Look(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestALookThatFailsSaysWhy(t *testing.T) {
	mem := memstore.New(nil)
	faulty := storetest.NewFaulty(mem)
	_, n := orders(t, segment.Config{Store: faulty})
	if _, err := n.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	faulty.Script = func(storetest.Call) storetest.Outcome { return storetest.FailUnapplied }
	if err := n.Look(t.Context()); err == nil || errors.Is(err, store.ErrForeign) {
		t.Errorf("a store that is away: %v", err)
	}
	faulty.Script = nil
	mem.Restore(nil)
	if _, err := mem.CompareAndSwap(t.Context(), register.CounterKey("orders"), 0, []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if err := n.Look(t.Context()); !errors.Is(err, store.ErrForeign) {
		t.Errorf("a record of somebody else: %v", err)
	}
}

// Each loss is counted, though the look after the one before has put the counter right. After Close nothing is written.
func TestALookCountsEachLoss(t *testing.T) {
	mem := memstore.New(nil)
	all, n := orders(t, segment.Config{Store: mem})
	if _, err := n.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for losses := int64(1); losses <= 3; losses++ {
		mem.Restore(nil)
		if err := n.Look(t.Context()); err != nil || n.State().SetBacks != losses {
			t.Errorf("after loss %d: %v, %d set backs", losses, err, n.State().SetBacks)
		}
	}
	if err := all.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mem.Restore(nil)
	if err := n.Look(t.Context()); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := segment.ReadCounter(t.Context(), mem, "orders"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it has written: %v", err)
	}
}
