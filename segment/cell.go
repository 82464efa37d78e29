package segment

import (
	"sync/atomic"

	"github.com/firn-id/firn"
)

// A cell is a range that callers take from. A caller adds to the word; what it added below end is
// its own.
//
// Why no id is issued twice: the word begins at the range's first id and only grows, so no two
// additions claim the same, and once past end it stays there. A cell serves one range and is
// never filled again, so a caller that was stopped between reading the pointer and adding
// finds it used up. Why ids do not go back: the next range is installed after the word was seen
// past end, so whatever was claimed here was claimed before anything there.
type cell struct {
	_    [64]byte
	word atomic.Uint64 // the hot word stays alone on its cache line
	_    [56]byte

	// mark is where callers check whether to fetch a range; at most end. It is a hint: nothing
	// depends on when a caller sees it.
	mark   atomic.Uint64
	stride uint64
	end    uint64 // one above the last id
	due    uint64 // from here on the next range should be in memory
	whole  Range
}

// sealed marks a word out of use: not below any end, and far from wrapping. A caller adds at
// most maxTake * maxStride = 2^40 to it, and then takes, which installs another cell.
const sealed = uint64(1) << 63

const (
	// maxTake bounds the ids that one addition claims.
	maxTake = 1 << 20
	// maxTakeAll bounds the ids of [Namespace.TakeAll].
	maxTakeAll = 1 << 30
	// maxStride bounds the stride.
	maxStride = 1 << 20
)

// newCell returns a cell of r whose next range is due when the fraction ahead of it is left.
func newCell(r Range, ahead float64) *cell {
	c := &cell{end: uint64(r.Last()) + 1, stride: uint64(r.Stride), whole: r}
	used := min(int64(float64(r.Count)*(1-ahead)), r.Count-1)
	c.due = uint64(r.First) + uint64(used)*c.stride
	c.word.Store(uint64(r.First))
	c.mark.Store(c.due)
	return c
}

// count returns how many ids lie in [from, end).
func (c *cell) count(from uint64) int64 {
	if from >= c.end {
		return 0
	}
	return int64((c.end-from-1)/c.stride + 1)
}

// rest returns what has not been claimed. It may be claimed meanwhile.
func (c *cell) rest() Range { return c.from(c.word.Load()) }

// seal ends the use of the cell and returns what had not been claimed.
func (c *cell) seal() Range { return c.from(c.word.Swap(sealed)) }

func (c *cell) from(word uint64) Range {
	count := c.count(word)
	if count == 0 {
		return Range{}
	}
	r := c.whole
	r.First, r.Count = firn.ID(word), count
	return r
}

// used returns how many ids have been claimed.
func (c *cell) used() int64 { return c.whole.Count - c.count(c.word.Load()) }

// claim takes up to n ids, n at most maxTake, or a row: exactly n consecutive ids. If there are not
// so many, the count is 0 and First means nothing. The range names no write, so it cannot be given back.
func (c *cell) claim(n uint64, row bool) Range {
	switch {
	case row && c.stride != 1:
		return Range{}
	case row:
		return c.exactly(n)
	case c.word.Load() >= c.end:
		return Range{}
	}
	add := n * c.stride
	p := c.word.Add(add) - add
	return Range{First: firn.ID(p), Count: min(c.count(p), int64(n)), Stride: c.whole.Stride}
}

// exactly is claim of n ids, n at most maxTakeAll, or of none.
func (c *cell) exactly(n uint64) Range {
	for {
		word := c.word.Load()
		if c.count(word) < int64(n) {
			return Range{}
		}
		if c.word.CompareAndSwap(word, word+n*c.stride) {
			return Range{First: firn.ID(word), Count: int64(n), Stride: c.whole.Stride}
		}
	}
}
