package segment_test

import (
	"context"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
)

// Raise is what an operator calls after a restore, also on a process that was
// running all the time and holds greater ids.
func TestRaiseRaisesTheStoreAlsoWhereThisProcessIsFurther(t *testing.T) {
	ctx := context.Background()
	for _, wiped := range []bool{true, false} {
		w := newWorld(t, 1)
		n := w.orders()
		w.mustTake(n, 500)
		w.stage.settle()
		if wiped {
			w.mem.Delete(segment.Key("orders"))
		} else {
			entry, err := w.mem.Get(ctx, segment.Key("orders"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.mem.CompareAndSwap(ctx, entry.Key, entry.Revision, []byte(`{"next":"4","stride":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.Raise(ctx, 400); err != nil {
			t.Fatal(err)
		}
		w.mustTake(n, 100) // what was held goes on
		if id, err := w.orders().Next(); err != nil || id <= 400 {
			t.Errorf("wiped %v: another process got %d, %v after the counter was raised to 400", wiped, id, err)
		}
		w.store.SetDown(true)
		if err := n.Raise(ctx, 400); err == nil {
			t.Error("the counter was raised in a store that is away")
		}
		w.store.SetDown(false)
		if err := n.Raise(ctx, 5_000_000); err != nil {
			t.Error(err)
		}
		if id := w.mustTake(n, 1); id < 5_000_000 {
			t.Errorf("the next id is %d after the counter was raised to 5,000,000", id)
		}
		if _, err := n.Take(ctx, 1); err != nil {
			t.Error(err)
		}
		if err := n.Raise(ctx, firn.MaxID); err != nil {
			t.Error(err)
		}
		if id := w.mustTake(n, 1); id != firn.MaxID {
			t.Errorf("the last id is %d", id)
		}
	}
}
