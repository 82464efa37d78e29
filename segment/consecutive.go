package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn"
)

// MaxConsecutive bounds the ids that one call of [Name.Consecutive] returns.
const MaxConsecutive = maxTake

// maxRows bounds how often the first of those who wait for consecutive ids finds what was
// fetched too short, before it gives up.
const maxRows = 16

// Consecutive takes count ids in a row, 1 to [MaxConsecutive], and returns them as
// a range of stride 1: for callers that add count to a counter and reckon from the
// last. All of them, or none and why.
//
// They come from one range, or from several that this process fetched in a row, without
// a gap.
// What is left of the range in use and too short is not issued any more, so that
// ids of a process still grow: calls with a count in the order of the least step
// leave many gaps. Where no range at hand is long enough, the next fetch asks for
// count ids at least, whatever MaxStep is.
//
// Errors are those of [Name.Next], [ErrNotConsecutive], and *[firn.RangeError]
// for a count out of range. It waits as [Name.NextContext] does; with a context that
// has ended it takes what is at hand, or starts nothing.
func (n *Name) Consecutive(ctx context.Context, count int) (Range, error) {
	if count < 1 || count > MaxConsecutive {
		return Range{}, firn.NewRangeError("number of consecutive ids", int64(count), 1, MaxConsecutive, "")
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

// claimRow takes n consecutive ids, or none.
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

// A row is a caller who waits for consecutive ids. Name.mu guards it.
type row struct {
	count int64
	got   Range // none while its Count is 0
	waits bool  // it is in Name.rows
	tries int   // how many fetches have ended in vain while nobody waited before this caller
	err   error // why it is no use to wait any longer
}

// rowSlowly takes consecutive ids from ranges fetched ahead, or waits for one.
func (n *Name) rowSlowly(ctx context.Context, count int64) (Range, error) {
	if ctx.Err() != nil {
		return n.rowAtHand(ctx, count)
	}
	w := &row{count: count}
	err := n.wait(ctx, func() bool { return n.rowEnds(w) })
	n.mu.Lock()
	n.leaveRows(w)
	r, short := w.got, w.err
	n.mu.Unlock()
	if r.Count > 0 { // also for a caller who was about to leave
		return r, nil
	}
	return Range{}, errors.Join(err, short)
}

// rowEnds reports whether w need not wait any longer: it has its ids, or an error. The
// caller holds mu.
func (n *Name) rowEnds(w *row) bool {
	if w.got.Count > 0 {
		return true
	}
	if w.got = n.takeRow(w.count); w.got.Count > 0 {
		n.leaveRows(w) // at once, or it would be served again
		return true
	}
	switch {
	case n.stride > 1:
		w.err = fmt.Errorf("%w: those of %q are %d apart", ErrNotConsecutive, n.name, n.stride)
	case !w.waits:
		w.waits = true
		n.rows = append(n.rows, w)
	case n.rows[0] == w: // a fetch has ended, or it would not look again
		w.tries++
	}
	if w.err == nil && (w.tries >= maxRows || len(n.chain) >= maxChain) {
		w.err = fmt.Errorf("%w: %d of %q were asked for, and %d ranges that were fetched are too short or were used up by others; ask for fewer",
			ErrNotConsecutive, w.count, n.name, w.tries)
	}
	return w.err != nil
}

// serveRows gives those who wait for consecutive ids theirs, in order, before anybody
// else comes upon a range that has just been fetched. Where nothing was left for others who
// wait, they have the first look at the next range. The caller holds mu.
func (n *Name) serveRows() {
	if n.passed {
		n.passed = false
		return
	}
	served := 0
	for _, w := range n.rows {
		if w.got = n.takeRow(w.count); w.got.Count == 0 {
			break
		}
		w.waits = false
		served++
	}
	n.rows = slices.Delete(n.rows, 0, served)
	n.passed = served > 0 && n.others > 0 && n.left() == 0
}

// leaveRows takes w out of those who wait, if it still does. The caller holds mu.
func (n *Name) leaveRows(w *row) {
	if !w.waits {
		return
	}
	w.waits = false
	i := slices.Index(n.rows, w)
	n.rows = slices.Delete(n.rows, i, i+1)
}

// longest returns how long the longest row is that callers wait for; 0 for none. The
// caller holds mu.
func (n *Name) longest() (count int64) {
	for _, w := range n.rows {
		count = max(count, w.count)
	}
	return count
}

// rowAtHand takes consecutive ids without waiting.
func (n *Name) rowAtHand(ctx context.Context, count int64) (Range, error) {
	n.mu.Lock()
	var r Range
	fetch := false
	err := context.Cause(ctx)
	if n.closed {
		err = firn.ErrClosed
	} else if r = n.takeRow(count); r.Count > 0 {
		fetch, err = n.decide(), nil
	}
	n.mu.Unlock()
	if fetch {
		n.all.enqueue(n)
	}
	return r, err
}

// wantsRow reports whether callers wait for a longer row than is held, and may have it.
// The caller holds mu.
func (n *Name) wantsRow() bool {
	if len(n.rows) == 0 || n.stride > 1 || len(n.chain) >= maxChain {
		return false
	}
	count := n.longest()
	return n.cell.Load().rest().Count < count && n.findRow(count) < 0
}

// takeRow takes consecutive ids from the cell, or else from the first ranges of
// the chain that are long enough together; what lies before is dropped. The caller
// holds mu.
func (n *Name) takeRow(count int64) Range {
	c := n.cell.Load()
	if r := c.claimRow(uint64(count)); r.Count > 0 {
		return r
	}
	if i := n.findRow(count); i >= 0 {
		return n.startRow(c, i, uint64(count))
	}
	return Range{}
}

// findRow returns where in the chain count ids in a row begin; -1 for nowhere.
func (n *Name) findRow(count int64) int {
	for i := 0; i < len(n.chain); {
		run, next := n.join(i)
		if run.Stride == 1 && run.Count >= count {
			return i
		}
		i = next
	}
	return -1
}

// startRow makes the ranges that are joined at i the cell, and takes from it.
func (n *Name) startRow(c *cell, i int, count uint64) Range {
	run, next := n.join(i)
	rest := c.seal()
	n.spent += c.count(c.first) - rest.Count
	if i == 0 && rest.Count > 0 && run.follows(rest) {
		run = run.after(rest)
	}
	made := newCell(run, n.all.cfg.Ahead)
	n.chain = append(n.chain[:0], n.chain[next:]...)
	r := made.claim(count) // before others see it, so that this caller cannot come away empty
	n.floor = firn.ID(made.end - 1)
	n.cell.Store(made)
	return r
}

// join returns the range i of the chain with those that follow it, and the index of
// the one after them.
func (n *Name) join(i int) (run Range, next int) {
	run = n.chain[i]
	for next = i + 1; next < len(n.chain) && n.chain[next].follows(run); next++ {
		run = n.chain[next].after(run)
	}
	return run, next
}
