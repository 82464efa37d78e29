package segment

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
)

func TestACellGivesEachIDOnceAndNoIDAfterItIsSealed(t *testing.T) {
	for _, r := range []Range{
		{First: 1, Count: 1000, Stride: 1}, {First: 0, Count: 1, Stride: 1}, {First: firn.MaxID, Count: 1, Stride: 1},
		{First: firn.MaxID - 9*maxStride, Count: 10, Stride: maxStride}, {First: 3, Count: 777, Stride: 5},
	} {
		for _, n := range []uint64{1, 7, maxTake} {
			c := newCell(r, 0.8)
			var got []firn.ID
			for {
				part := c.claim(n, false)
				if part.Count == 0 {
					break
				}
				got = part.AppendTo(got)
				if rest := c.rest().Count; rest+c.used() != r.Count || c.used() != int64(len(got)) {
					t.Fatalf("%v: %d claimed, %d left, %d used", r, len(got), rest, c.used())
				}
			}
			if int64(len(got)) != r.Count || got[0] != r.First || got[len(got)-1] != r.Last() {
				t.Errorf("%v by %d: %d ids", r, n, len(got))
			}
			// However often callers add in vain, nothing comes of it.
			for range 1000 {
				if p := c.word.Add(c.stride) - c.stride; p < c.end {
					t.Fatalf("%v: %d was claimed again", r, p)
				}
			}
			if rest := c.seal(); rest.Count != 0 || c.used() != r.Count {
				t.Errorf("%v: %v left when sealed", r, rest)
			}
		}
		c := newCell(r, 1)
		taken := c.claim(3, false)
		rest := c.seal()
		if taken.Count+rest.Count != r.Count || rest.Count > 0 && rest.First != taken.Last()+firn.ID(r.Stride) {
			t.Errorf("%v: %v taken, %v left when sealed", r, taken, rest)
		}
		if late := c.claim(1, false); late.Count != 0 {
			t.Errorf("%v: %v claimed after it was sealed", r, late)
		}
		if p := c.word.Add(c.stride) - c.stride; p < c.end {
			t.Errorf("%v: %d claimed after it was sealed", r, p)
		}
	}
}

func TestACellSealedUnderLoadCountsWhatWasClaimed(t *testing.T) {
	for range 300 {
		c := newCell(Range{First: 1, Count: 1 << 40, Stride: 1}, 1)
		var group sync.WaitGroup
		most := make([]uint64, 3)
		for i := range most {
			group.Go(func() {
				for {
					p := c.word.Add(1) - 1
					if p >= c.end {
						return
					}
					most[i] = p
				}
			})
		}
		for c.word.Load() < 100 {
		}
		rest := c.seal()
		group.Wait()
		if highest := max(most[0], most[1], most[2]); uint64(rest.First) != highest+1 {
			t.Fatalf("the rest begins at %d, %d was claimed", rest.First, highest)
		}
	}
}

func TestAMarkLeavesTheFractionAhead(t *testing.T) {
	for _, c := range []struct {
		count int64
		ahead float64
		used  uint64
	}{{1000, 0.8, 200}, {1000, 1, 0}, {1, 0.8, 0}, {1, 0.01, 0}, {2, 1e-9, 1}, {2, 1e-17, 1}, {1000, 1e-17, 999}, {3, 0.5, 1}} {
		cell := newCell(Range{First: 7, Count: c.count, Stride: 3}, c.ahead)
		if used := (cell.due - 7) / 3; used < c.used-min(c.used, 1) || used > c.used || cell.due >= cell.end {
			t.Errorf("of %d with %v ahead the next is due after %d, want %d", c.count, c.ahead, used, c.used)
		}
	}
}

func TestRowsOfConcurrentCallersAreApart(t *testing.T) {
	c := newCell(Range{First: 1, Count: 1 << 40, Stride: 1}, 1)
	var group sync.WaitGroup
	var claimed atomic.Int64
	for range 4 {
		group.Go(func() {
			for range 200_000 {
				claimed.Add(c.claim(3, true).Count + c.claim(1, false).Count)
			}
		})
	}
	group.Wait()
	if n := claimed.Load(); n != c.used() {
		t.Errorf("callers got %d ids, and %d were taken", n, c.used())
	}
}
