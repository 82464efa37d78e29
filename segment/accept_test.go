package segment

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firn-id/firn/store/memstore"
)

// TestARangeThatSharesASingleIDIsDropped: with what is held, or with what was issued.
func TestARangeThatSharesASingleIDIsDropped(t *testing.T) {
	s, err := Open(Config{Store: memstore.New(nil)})
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
		n := &Name{all: s, name: "orders", floor: 10, asked: 10, chain: []Range{{First: 20, Count: 10, Stride: 1}}}
		n.cell.Store(s.empty)
		err := n.accept(c.r)
		switch {
		case c.want == "" && (!errors.Is(err, ErrOrder) || n.dropped != 1 || len(n.chain) != 1):
			t.Errorf("%v: %v, %d dropped, %v is held", c.r, err, n.dropped, n.chain)
		case c.want != "" && (err != nil || n.dropped != 0 || fmt.Sprint(n.chain) != c.want):
			t.Errorf("%v: %v, %v is held, want %s", c.r, err, n.chain, c.want)
		}
	}
}
