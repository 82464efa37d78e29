package segment_test

import (
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
			writes := faulty.Counts().CompareAndSwap
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
			_, other := orders(t, cfg)
			if id, err := other.Next(t.Context()); err != nil || uint64(id) <= last {
				t.Errorf("another process makes %d, %v; %d was made here", id, err, last)
			}
		})
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
