package segment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

// Raise is what an operator calls after a restore, also on a process that was
// running all the time and holds greater ids.
func TestRaiseRaisesTheStoreEvenIfThisProcessIsFurther(t *testing.T) {
	ctx := context.Background()
	for _, wiped := range []bool{true, false} {
		w := newWorld(t, 1)
		n := w.orders()
		w.mustTake(n, 500)
		w.stage.settle()
		if wiped {
			w.mem.Delete(register.CounterKey("orders"))
		} else {
			entry, err := w.mem.Get(ctx, register.CounterKey("orders"))
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
		if id, err := w.orders().Next(ctx); err != nil || id <= 400 {
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
		if id := w.mustTake(n, 1); id <= 5_000_000 {
			t.Errorf("the next id is %d after the counter was raised to 5,000,000", id)
		}
		if _, err := n.Take(ctx, 1); err != nil {
			t.Error(err)
		}
		if err := n.Raise(ctx, firn.MaxID-1); err != nil {
			t.Error(err)
		}
		if id := w.mustTake(n, 1); id != firn.MaxID {
			t.Errorf("the last id is %d", id)
		}
	}
}

// What docs/segments.md says of an outage: Ahead of Target, 12 minutes, at a demand
// that the step could adapt to, whenever it begins.
func TestRangesLastThroughAnOutageAsLongAsDocumented(t *testing.T) {
	for _, c := range []struct {
		rate  int // ids a second
		least time.Duration
	}{{1, 12 * time.Minute}, {100, 12 * time.Minute}, {1000, 12 * time.Minute}, {5000, 160 * time.Second}} {
		for begins := range 16 {
			w := newWorld(t, 1)
			n := w.orders()
			make := func(d time.Duration) (made time.Duration, err error) {
				for ; made < d; made += time.Second {
					for left := c.rate; left > 0; {
						r, err := n.Take(context.Background(), left)
						if err != nil {
							return made, err
						}
						left -= r.Len()
					}
					w.stage.settle()
					w.stage.now += time.Second
				}
				return made, nil
			}
			if _, err := make(3*time.Hour + time.Duration(begins)*time.Minute); err != nil {
				t.Fatal(err)
			}
			said := n.State().Lasts
			w.store.SetDown(true)
			lasted, err := make(24 * time.Hour)
			if !errors.Is(err, store.ErrUnavailable) && lasted < 24*time.Hour {
				t.Error(err)
			}
			if lasted < c.least-2*time.Second || lasted < said-time.Minute || lasted < 24*time.Hour && lasted > said+time.Minute {
				t.Errorf("%d ids a second, an outage after %d minutes: they lasted %v, at least %v is promised, State said %v", c.rate, begins, lasted, c.least, said)
			}
		}
	}
}

// Calls of all kinds at once, beside another process that is closed and opened
// again, in a store that loses answers: no id twice, nor back, nor below what was
// raised to.
func TestRaisesBesideCallersAndAProcessThatComesAndGoes(t *testing.T) {
	mem := storetest.NewFaulty(memstore.New(nil))
	mem.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && c.N%5 == 0 {
			return []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate}[c.N/5%3]
		}
		return storetest.Pass
	}
	ctx := context.Background()
	cfg := segment.Config{Store: mem, MinStep: 7, MaxStep: 70, Target: 10 * time.Millisecond, Ahead: 1}
	var (
		mu   sync.Mutex
		seen = map[firn.ID]bool{}
		all  sync.WaitGroup
	)
	note := func(ids []firn.ID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if seen[id] {
				t.Errorf("%d a second time", id)
			}
			seen[id] = true
		}
	}
	s := mustOpen(t, cfg)
	n, err := s.Namespace("orders")
	if err != nil {
		t.Fatal(err)
	}
	for who := range 4 {
		all.Go(func() {
			last := firn.ID(-1)
			for round := range 3000 {
				ids := make([]firn.ID, 1+round%9)
				var err error
				filled := 1
				if who%2 == 0 {
					ids[0], err = n.Next(ctx)
				} else {
					filled, err = n.Fill(ctx, ids)
				}
				if err != nil {
					filled = 0
				}
				for _, id := range ids[:filled] {
					if id <= last {
						t.Errorf("%d after %d", id, last)
					}
					last = id
				}
				note(ids[:filled])
			}
		})
	}
	all.Go(func() {
		for round := range 300 {
			last := firn.ID(round * 500)
			if n.Raise(ctx, last) != nil {
				continue
			}
			if id, err := n.Next(ctx); err == nil {
				if id <= last {
					t.Errorf("%d after raising to %d", id, last)
				}
				note([]firn.ID{id})
			}
			_ = n.State()
		}
	})
	all.Go(func() {
		for range 60 {
			other := mustOpen(t, cfg)
			for range 20 {
				if id, err := other.Next(ctx, "orders"); err == nil {
					note([]firn.ID{id})
				}
			}
			_ = other.Close(ctx) // an answer of its own may be lost, and its ids stay unused
		}
	})
	all.Wait()
	_ = s.Close(ctx)
	if len(seen) < 10_000 {
		t.Errorf("only %d ids", len(seen))
	}
}
