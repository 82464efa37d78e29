package segment_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// takeAll takes exactly count ids and notes them.
func (w *world) takeAll(n *segment.Namespace, count int) error {
	w.t.Helper()
	all, err := n.TakeAll(context.Background(), count, nil)
	got := 0
	for _, r := range all {
		got += r.Len()
		for id := range r.All() {
			w.note(n, id)
		}
	}
	if err == nil && got != count || err != nil && got != 0 {
		w.t.Fatalf("%d of %d: %v", got, count, err)
	}
	return err
}

func TestAllOrNoneAreTaken(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed)
		n := w.orders(steps(10, 80))
		for range 100 {
			if err := w.takeAll(n, 1+w.stage.random.IntN(300)); err != nil {
				t.Fatal(err)
			}
			w.mustTake(n, 1+w.stage.random.IntN(30))
		}
		w.store.SetDown(true)
		w.stage.settle()
		before := n.State()
		if err := w.takeAll(n, int(before.Left)+1); !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		if s := n.State(); s.Left != before.Left || s.Issued != before.Issued {
			t.Fatalf("a call that failed took ids: %+v, %+v before", s, before)
		}
		if before.Left == 0 {
			continue
		}
		if err := w.takeAll(n, int(before.Left)); err != nil {
			t.Fatal(err)
		}
		if s := n.State(); s.Left != 0 || s.Issued != before.Issued+before.Left {
			t.Fatalf("%+v, %+v before", s, before)
		}
	}
}

func TestAtTheEndTheLastIDsAreLeftToCallersThatNeedFewer(t *testing.T) {
	for _, stride := range []int64{1, 7} {
		w := newWorld(t, 1)
		n := w.orders(steps(10, 10), func(c *segment.Config) { c.Max, c.Stride = firn.ID(100*stride), stride })
		if err := w.takeAll(n, 95); err != nil {
			t.Fatal(err)
		}
		err := w.takeAll(n, 6)
		if !errors.Is(err, segment.ErrExhausted) || !strings.Contains(err.Error(), `"orders" has 5 ids left, not 6: ask for fewer`) {
			t.Fatal(err)
		}
		if err := w.takeAll(n, 4); err != nil {
			t.Fatal(err)
		}
		if err := w.takeAll(n, 2); err == nil || !strings.Contains(err.Error(), "has 1 ids left, not 2") {
			t.Fatal(err)
		}
		if err := w.takeAll(n, 1); err != nil {
			t.Fatal(err)
		}
		if err := w.takeAll(n, 1); !errors.Is(err, segment.ErrExhausted) || strings.Contains(err.Error(), "ask for fewer") {
			t.Fatal(err)
		}
	}
}

func TestTheNextRangeIsFetchedAheadOfCallersThatNeedAll(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(100, 100))
	for range 20 {
		if err := w.takeAll(n, 20); err != nil {
			t.Fatal(err)
		}
		w.stage.settle()
		if s := n.State(); s.Left < 50 {
			t.Fatalf("%+v", s)
		}
	}
	if s := n.State(); s.Waits != 1 {
		t.Errorf("%d calls waited", s.Waits)
	}
}

func TestSoManyIDsMayBeTakenAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(1000, 1000))
	for _, count := range []int{math.MinInt, 0, 1<<30 + 1} {
		before := []segment.Range{{First: 1, Count: 1, Stride: 1}}
		if all, err := n.TakeAll(t.Context(), count, before); !errors.Is(err, firn.ErrRange) || !slices.Equal(all, before) || !strings.Contains(err.Error(), ": 1 to 1073741824 are allowed") {
			t.Errorf("%d: %v, %v", count, all, err)
		}
	}
	for _, count := range []int{1, 1 << 30} {
		all, err := n.TakeAll(t.Context(), count, nil)
		got := 0
		for _, r := range all {
			got += int(r.Count)
		}
		if err != nil || got != count {
			t.Errorf("%d: %d, %v", count, got, err)
		}
	}
	tiny, err := segment.New(segment.Config{Source: sourceFunc(func(_ context.Context, _ string, ask segment.Ask) (segment.Range, error) {
		return segment.Range{First: max(ask.Above, 0) + 1, Count: 1}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	few, err := tiny.Namespace("orders")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := few.TakeAll(t.Context(), 16, nil); err != nil || len(all) != 16 {
		t.Errorf("of sixteen ranges that are fetched: %v, %v", all, err)
	}
	if _, err := few.TakeAll(t.Context(), 1000, nil); !errors.Is(err, segment.ErrSource) {
		t.Errorf("a source of single ids: %v", err)
	}
	if id, err := few.Next(t.Context()); id == 0 || err != nil {
		t.Errorf("after that: %d, %v", id, err)
	}
}

func TestCallersOfAllVerbsBesideEachOther(t *testing.T) {
	s := mustOpen(t, segment.Config{Store: memstore.New(nil), MinStep: 100, MaxStep: 100})
	n, err := s.Namespace("orders")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[firn.ID]bool{}
	var group sync.WaitGroup
	for worker := range 16 {
		group.Go(func() {
			last := firn.ID(0)
			for i := range 400 {
				var all []segment.Range
				var r segment.Range
				var err error
				switch worker % 4 {
				case 0:
					all, err = n.TakeAll(t.Context(), 1+i%250, nil)
				case 1:
					r, err = n.Reserve(t.Context(), 1+i%40)
					all = append(all, r)
				case 2:
					r, err = n.Take(t.Context(), 1+i%7)
					all = append(all, r)
				default:
					r.Count, r.Stride = 1, 1
					r.First, err = n.Next(t.Context())
					all = append(all, r)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, r := range all {
					if r.First <= last {
						t.Errorf("%v after %d", r, last)
					}
					last = r.Last()
					for id := range r.All() {
						if seen[id] {
							t.Errorf("id %d a second time", id)
						}
						seen[id] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if s := n.State(); s.Issued < int64(len(seen)) {
		t.Errorf("%d ids are counted, and %d were issued", s.Issued, len(seen))
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
