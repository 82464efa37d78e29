package segment

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memstore"
)

// TestARangeThatOverlapsByOneIDIsDropped: with what is held, or with what was issued.
func TestARangeThatOverlapsByOneIDIsDropped(t *testing.T) {
	s, err := New(Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		r    Range
		want string // the chain after it; empty for a range that is dropped
	}{
		{Range{First: 20, Count: 1}, ""},
		{Range{First: 11, Count: 10}, ""},
		{Range{First: 11, Count: 9}, "[11 to 19 20 to 29]"},
		{Range{First: 29, Count: 5}, ""},
		{Range{First: 30, Count: 5}, "[20 to 29 30 to 34]"},
		{Range{First: 8, Count: 5, Stride: 3}, ""}, // 8, 11, 14, 17, 20
		{Range{First: 10, Count: 1}, ""},           // the floor
		{Range{First: 11, Count: 1}, "[11 to 11 20 to 29]"},
	} {
		n := &stock{all: s, name: "orders", floor: 10, chain: []Range{{First: 20, Count: 10, Stride: 1}}}
		n.cell.Store(s.empty)
		err := n.accept(c.r, 10)
		switch {
		case c.want == "" && (!errors.Is(err, ErrOrder) || n.dropped != 1 || len(n.chain) != 1):
			t.Errorf("%v: %v, %d dropped, %v is held", c.r, err, n.dropped, n.chain)
		case c.want != "" && (err != nil || n.dropped != 0 || fmt.Sprint(n.chain) != c.want):
			t.Errorf("%v: %v, %v is held, want %s", c.r, err, n.chain, c.want)
		}
	}
}

func TestARangeAboveTheLastIDSaysWhereItBeginsAndWhatTheLastIs(t *testing.T) {
	s, err := New(Config{Store: memstore.New(nil), Max: 50})
	if err != nil {
		t.Fatal(err)
	}
	n := &stock{all: s, name: "orders", floor: 10}
	n.cell.Store(s.empty)
	var e *ExhaustedError
	if err := n.accept(Range{First: 51, Count: 9}, 10); !errors.As(err, &e) || *e != (ExhaustedError{Name: "orders", Next: 51, Max: 50}) {
		t.Error(err)
	}
}

// A range that is cut off cannot be given back: its write granted more.
func TestARangeIsCutOffAtTheLastIDAndNeverGrows(t *testing.T) {
	nine := Range{First: 1, Count: 9, Stride: 1, revision: 5}
	wide := Range{First: 1, Count: 3, Stride: 5, revision: 5} // 1, 6, 11
	last := Range{First: firn.MaxID - 1, Count: 2, Stride: 1, revision: 5}
	for _, c := range []struct {
		r    Range
		last firn.ID
		want Range
	}{
		{nine, 100, nine},
		{nine, 10, nine},
		{nine, 9, nine},
		{nine, 8, Range{First: 1, Count: 8, Stride: 1}},
		{nine, 1, Range{First: 1, Count: 1, Stride: 1}},
		{nine, 0, Range{}},
		{wide, 16, wide},
		{wide, 11, wide},
		{wide, 10, Range{First: 1, Count: 2, Stride: 5}},
		{last, firn.MaxID, last},
	} {
		if got := c.r.upTo(c.last); got != c.want {
			t.Errorf("%v up to %d: %+v, want %+v", c.r, c.last, got, c.want)
		}
	}
}

// A row that no range has room for takes nothing from others. A cell that is used up goes out of use:
// callers would add to its word for as long as an outage lasts.
func TestATakeInVainChangesNothingAndEndsAUsedUpCell(t *testing.T) {
	s, err := New(Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	n := &stock{all: s, name: "orders", chain: []Range{{First: 20, Count: 5, Stride: 1}}}
	n.cell.Store(newCell(Range{First: 1, Count: 3, Stride: 1}, 1))
	if got := n.take(9, true); got.Count != 0 || n.left() != 8 {
		t.Errorf("%v for a row of nine; %d ids are left of eight", got, n.left())
	}
	for _, want := range []string{"1 to 3", "20 to 24", "no ids"} {
		if got := n.take(9, false).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if n.cell.Load() != s.empty || n.issued() != 8 {
		t.Errorf("the cell is still in use; %d ids of eight count as issued", n.issued())
	}
}

// However many ranges are held, one is fetched for a caller that needs more ids than they have.
func TestAFullChainIsNoReasonNotToFetch(t *testing.T) {
	s, err := New(Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	n := &stock{all: s, name: "orders"}
	n.cell.Store(s.empty)
	for i := range firn.ID(maxChain) {
		n.chain = append(n.chain, Range{First: 1 + 20*i, Count: 10, Stride: 1})
	}
	w := &waiter{count: 1000, whole: true}
	if n.serve(w) || w.err != nil {
		t.Errorf("before a fetch: %v", w.err)
	}
	if w.tries = 1; !n.serve(w) || !errors.Is(w.err, ErrSource) || w.all != nil || n.left() != 10*maxChain {
		t.Errorf("after a fetch that did not suffice: %v, %d are left", w.err, n.left())
	}
	w.count, w.err = 640, nil
	if !n.serve(w) || w.err != nil || len(w.all) != maxChain {
		t.Errorf("as many as there are: %v, %v", w.all, w.err)
	}
}
