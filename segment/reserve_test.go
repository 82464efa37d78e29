package segment_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
)

// row takes ids in a row and notes them.
func (w *world) row(n *segment.Namespace, count int) segment.Range {
	w.t.Helper()
	r, err := n.Reserve(context.Background(), count)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Len() != count || r.Stride != 1 {
		w.t.Fatalf("%d in a row: %v", count, r)
	}
	for id := range r.All() {
		w.note(n, id)
	}
	return r
}

func TestConsecutiveIDsAreInARowWhateverTheStep(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		a := w.orders(steps(10, 80))
		b := w.orders(steps(10, 80)) // another process, whose ranges lie between
		for range 100 {
			n := a
			if w.stage.random.IntN(3) == 0 {
				n = b
			}
			switch w.stage.random.IntN(4) {
			case 0:
				w.row(n, 1+w.stage.random.IntN(8))
			case 1:
				w.row(n, 1+w.stage.random.IntN(500))
			case 2:
				w.mustTake(n, 1+w.stage.random.IntN(60))
			default:
				w.stage.settle()
			}
		}
	}
}

func TestConsecutiveIDsOfOneProcessLeaveNoGap(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(10, 10))
	last := firn.ID(0)
	for _, count := range []int{3, 4, 5, 100, 1, 9, 10, 11, 25} {
		w.stage.settle()
		r := w.row(n, count)
		if r.First != last+1 && count <= 10 {
			t.Errorf("%d in a row after %d: %v", count, last, r)
		}
		last = r.Last()
	}
}

func TestUnusedIDsAreGivenBackAfterConsecutiveOnes(t *testing.T) {
	w := newWorld(t, 1)
	s := w.open(steps(10, 10))
	n := w.name(s, "orders")
	w.row(n, 4)
	r := w.row(n, 15)
	w.stage.settle()
	w.close(s)
	if next := w.orders(steps(10, 10)); true {
		if id := w.row(next, 1).First; id != r.Last()+1 {
			t.Errorf("after Close the store goes on at %d, want %d", id, r.Last()+1)
		}
	}
}

func TestConsecutiveIDsAreRefusedIfTheNameCannotHaveThem(t *testing.T) {
	w := newWorld(t, 1)
	for _, count := range []int{0, -1, 1<<20 + 1, math.MaxInt} {
		want := fmt.Sprintf("segment \"orders\": number of ids %d is out of range: 1 to 1048576 are allowed", count)
		if _, err := w.orders().Reserve(t.Context(), count); !errors.Is(err, firn.ErrRange) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	striped := w.name(w.open(func(c *segment.Config) { c.Offset, c.Stride = 1, 4 }), "striped")
	if _, err := striped.Reserve(t.Context(), 2); !errors.Is(err, segment.ErrNotConsecutive) || striped.State().Fetches != 0 {
		t.Errorf("of a stride: %v, %+v", err, striped.State())
	}
	end := w.name(w.open(steps(10, 10), func(c *segment.Config) { c.Max = 25 }), "end")
	w.row(end, 20)
	if r, err := end.Reserve(t.Context(), 6); !errors.Is(err, segment.ErrExhausted) {
		t.Errorf("beyond the last id: %v, %v", r, err)
	}
	w.row(end, 5)
	short := w.orders(func(c *segment.Config) { c.Source = &stingy{gap: 1} })
	if r, err := short.Reserve(t.Context(), 50); !errors.Is(err, segment.ErrNotConsecutive) {
		t.Errorf("of a source with short ranges: %v, %v", r, err)
	}
	if id, err := short.Next(t.Context()); err != nil || id < 1 {
		t.Errorf("afterwards: %d, %v", id, err)
	}
}

// stingy is a source of ranges of 10 ids, whatever it is asked for, gap apart.
type stingy struct{ next, gap firn.ID }

func (s *stingy) Fetch(context.Context, string, segment.Ask) (segment.Range, error) {
	r := segment.Range{First: s.next + 1, Count: 10, Stride: 1}
	s.next += 10 + s.gap
	return r, nil
}

func TestACallWhoseContextHasEndedTakesARowInMemoryAndStartsNoFetch(t *testing.T) {
	w := newWorld(t, 1)
	s := w.open(steps(10, 10))
	n := w.name(s, "orders")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Reserve(ended, 5); !errors.Is(err, context.Canceled) || n.State().Waits != 0 {
		t.Errorf("with nothing in memory: %v, %+v", err, n.State())
	}
	w.row(n, 8)
	w.stage.settle() // two ids are left, and the next ten follow
	if r, err := n.Reserve(ended, 5); err != nil || r.First != 9 || r.Len() != 5 {
		t.Errorf("over the end of a range: %v, %v", r, err)
	}
	if _, err := n.Reserve(ended, 50); !errors.Is(err, context.Canceled) {
		t.Errorf("with too little in memory: %v", err)
	}
	w.close(s)
	if _, err := n.Reserve(ended, 5); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestShortRangesWithoutAGapAreJoined(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(func(c *segment.Config) { c.Source = &stingy{} })
	if r := w.row(n, 95); r.First != 1 {
		t.Errorf("%v", r)
	}
	if r := w.row(n, 3); r.First != 96 {
		t.Errorf("%v", r)
	}
	if s := n.State(); s.Fetches > 12 {
		t.Errorf("more was fetched than needed: %+v", s)
	}
}

func TestACallForARowFailsWithTheStoreAndLosesNoIDs(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(10, 10))
	w.row(n, 2)
	w.stage.settle()
	w.store.SetDown(true)
	if _, err := n.Reserve(t.Context(), 1000); err == nil {
		t.Error("no error without a store")
	}
	if id := w.mustTake(n, 1); id != 3 {
		t.Errorf("the next id is %d, want 3", id)
	}
}

// The end of what is in use is what a later range must lie above.
func TestARangeThatBeginsWithTheLastIDInUseIsDropped(t *testing.T) {
	for way, ask := range asks {
		w := newWorld(t, 1)
		n := w.orders(func(c *segment.Config) {
			c.Source = listed(segment.Range{First: 1, Count: 150}, segment.Range{First: 150, Count: 150})
			c.Ahead = 1
		})
		if way == "raise" {
			continue // asks more often
		}
		if r, err := ask(t.Context(), n); err != nil || r.First != 1 {
			t.Errorf("%s: %v, %v", way, r, err)
		}
		w.stage.settle()
		if s := n.State(); s.Dropped != 1 || s.Ranges != 0 || !errors.Is(s.Err, segment.ErrOrder) {
			t.Errorf("%s: %+v", way, s)
		}
	}
}

func TestTheStrideOfASourceIsKnownAfterOneRange(t *testing.T) {
	w := newWorld(t, 1)
	calls, next := 0, firn.ID(1)
	n := w.orders(func(c *segment.Config) {
		c.Source = sourceFunc(func(_ context.Context, _ string, ask segment.Ask) (segment.Range, error) {
			calls++
			r := segment.Range{First: next, Count: ask.Step, Stride: 2}
			next = r.Last() + 2
			return r, nil
		})
	})
	for range 6 {
		_, err := n.Reserve(t.Context(), 10)
		if !errors.Is(err, segment.ErrNotConsecutive) || !strings.Contains(err.Error(), `those of "orders" are 2 apart`) || errors.Is(err, errStuck) {
			t.Fatal(err)
		}
		w.stage.settle()
	}
	if calls > 2 {
		t.Errorf("%d ranges were fetched for a row that there never is", calls)
	}
}

// TestTheNextRangeGoesToACallerThatWaitsForARow has others use up all that is fetched before who
// waited for it goes on.
func TestTheNextRangeGoesToACallerThatWaitsForARow(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(10, 10))
	woken := 0
	w.stage.waking = func() {
		woken++
		for n.State().Left > 0 {
			if _, err := n.Next(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for range 20 {
		if r, err := n.Reserve(t.Context(), 9); err != nil || r.Len() != 9 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	if woken == 0 {
		t.Error("no caller has waited")
	}
}

func TestARangeInUseWithAStrideHasNoRow(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(func(c *segment.Config) {
		c.Source = listed(segment.Range{First: 1, Count: 100, Stride: 2})
	})
	w.mustTake(n, 1)
	if r, err := n.Reserve(t.Context(), 2); !errors.Is(err, segment.ErrNotConsecutive) {
		t.Errorf("%v, %v", r, err)
	}
	if id, err := n.Next(t.Context()); id != 3 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
}
