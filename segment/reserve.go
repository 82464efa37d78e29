package segment

import (
	"context"
	"fmt"

	"github.com/firn-id/firn"
)

// MaxReserve bounds the ids that one call of [Namespace.Reserve] returns.
const MaxReserve = maxTake

// maxRows bounds how often the first caller that waits for consecutive ids may find the fetched
// ranges too short.
const maxRows = 16

// Reserve takes count ids in a row, 1 to [MaxReserve], and returns them as a range of
// stride 1: all of them, or an error.
//
// They come from one range, or from several that this process fetched in a row. If the rest of
// the range in use is too short it is dropped, so that ids of a process still grow: counts
// of about the least step leave many gaps. If no range in memory is long enough, the next fetch
// asks for at least count ids, whatever MaxStep is.
//
// It waits as [Namespace.Next] does, whose errors it returns, [ErrNotConsecutive], and
// *[firn.RangeError] for a count out of range.
func (n *Namespace) Reserve(ctx context.Context, count int) (Range, error) {
	if count < 1 || count > MaxReserve {
		return Range{}, firn.NewRangeError("number of consecutive ids", int64(count), 1, MaxReserve, "")
	}
	if stride := n.all.cfg.Stride; stride != 1 {
		return Range{}, fmt.Errorf("%w: those of %q are %d apart", ErrNotConsecutive, n.name, stride)
	}
	c := n.cell.Load()
	if r := c.claimRow(uint64(count)); r.Count > 0 {
		if uint64(r.Last()) >= c.mark.Load() {
			n.look(c)
		}
		return r, nil
	}
	return n.rowSlowly(ctx, int64(count))
}

// claimRow takes n consecutive ids, or returns the empty range.
func (c *cell) claimRow(n uint64) Range {
	for {
		word := c.word.Load()
		if c.stride != 1 || word >= c.end || c.end-word < n {
			return Range{}
		}
		if c.word.CompareAndSwap(word, word+n) {
			return Range{First: firn.ID(word), Count: int64(n), Stride: 1}
		}
	}
}

// rowSlowly takes consecutive ids from ranges fetched ahead, or waits for one.
func (n *Namespace) rowSlowly(ctx context.Context, count int64) (r Range, err error) {
	w := &waiter{row: count}
	w.ready = func() bool {
		if r = n.takeRow(count); r.Count == 0 {
			w.err = n.hopeless(w)
		}
		return r.Count > 0 || w.err != nil
	}
	err = n.wait(ctx, w)
	return r, err
}

// hopeless returns why waiting longer for a row is useless, or nil. The caller holds mu.
func (n *Namespace) hopeless(w *waiter) error {
	switch {
	case n.stride > 1:
		return fmt.Errorf("%w: those of %q are %d apart", ErrNotConsecutive, n.name, n.stride)
	case w.tries >= maxRows || len(n.chain) >= maxChain:
		return fmt.Errorf("%w: %d of %q were asked for, and %d ranges that were fetched are too short or were used up by others; ask for fewer",
			ErrNotConsecutive, w.row, n.name, w.tries)
	}
	return nil
}

// longest returns the length of the longest row that callers wait for. The caller holds mu.
func (n *Namespace) longest() (count int64) {
	for place := n.waiting.Front(); place != nil; place = place.Next() {
		w, _ := place.Value.(*waiter)
		count = max(count, w.row)
	}
	return count
}

// takeRow takes consecutive ids from the cell, or from the first ranges of the chain that are
// long enough together; it drops the ids before them. The caller holds mu.
func (n *Namespace) takeRow(count int64) Range {
	if r := n.cell.Load().claimRow(uint64(count)); r.Count > 0 {
		return r
	}
	for i := 0; i < len(n.chain); {
		run, next := n.joined(i)
		if run.Stride == 1 && run.Count >= count {
			if rest := n.retire(); i == 0 && rest.Count > 0 && run.follows(rest) {
				run = run.after(rest)
			}
			return n.begin(run, next, uint64(count))
		}
		i = next
	}
	return Range{}
}

// joined returns range i of the chain joined with those that follow it, and the index after them.
func (n *Namespace) joined(i int) (run Range, next int) {
	run = n.chain[i]
	for next = i + 1; next < len(n.chain) && n.chain[next].follows(run); next++ {
		run = n.chain[next].after(run)
	}
	return run, next
}
