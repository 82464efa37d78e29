package segment

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/firn-id/firn"
)

// A stock is the ids of a name in memory. [Namespace].mu guards it, but callers take from the cell
// without it.
type stock struct {
	cell  atomic.Pointer[cell] // the range in use
	chain []Range              // fetched ahead: ascending, disjoint, above floor
	floor firn.ID              // no range at or below it is used any more

	spent   int64 // ids issued from earlier cells
	stride  int64 // of the latest range accepted, 0 before the first
	dropped int64 // ranges dropped for their order
	closed  bool  // no id is issued any more

	all  *Segments
	name string
}

// take takes up to count ids from the cell, otherwise from the next range. A row is count
// consecutive ids from the cell, or from the first ranges that are long enough together; the ids
// before them are dropped.
func (s *stock) take(count uint64, row bool) Range {
	if r := s.cell.Load().claim(count, row); r.Count > 0 {
		return r
	}
	for i := 0; i < len(s.chain); {
		r, next := s.chain[i], i+1
		if row {
			r, next = s.joined(i)
		}
		if !row || r.Stride == 1 && r.Count >= int64(count) {
			if rest := s.retire(); i == 0 && r.follows(rest) {
				r = r.after(rest)
			}
			made := newCell(r, s.all.cfg.Ahead)
			taken := made.claim(count, row) // before others see the cell, so that this caller gets an id
			s.chain = slices.Delete(s.chain, 0, next)
			s.floor = r.Last()
			s.cell.Store(made)
			return taken
		}
		i = next
	}
	if !row {
		s.retire()
	}
	return Range{}
}

// takeAll takes exactly count ids, from the cell and the ranges that follow, or none if there are fewer.
func (s *stock) takeAll(count int64) (all []Range) {
	r := s.retire() // others take from the cell until then
	if r.Count+s.ahead() < count {
		if r.Count > 0 {
			s.cell.Store(newCell(r, s.all.cfg.Ahead))
		}
		return nil
	}
	s.spent += count
	for used := 0; ; used++ {
		if part := min(count, r.Count); part > 0 {
			all = append(all, Range{First: r.First, Count: part, Stride: r.Stride}) // names no write, so it cannot be given back
			r.First += firn.ID(part * r.Stride)
			r.Count -= part
			count -= part
		}
		if count == 0 {
			s.chain = slices.Delete(s.chain, 0, used)
			break
		}
		r = s.chain[used]
		s.floor = r.Last()
	}
	if r.Count > 0 {
		s.cell.Store(newCell(r, s.all.cfg.Ahead))
	}
	return all
}

// retire ends the use of the cell and returns what was not claimed.
func (s *stock) retire() (rest Range) {
	c := s.cell.Load()
	rest = c.seal()
	s.spent += c.whole.Count - rest.Count
	s.cell.Store(s.all.empty)
	return rest
}

// accept sorts a range into the chain, if it begins above all issued ids and overlaps no other
// range. It was fetched as a range above asked.
func (s *stock) accept(r Range, asked firn.ID) error {
	if s.closed {
		return firn.ErrClosed
	}
	if r.Stride == 0 {
		r.Stride = 1
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("segment: fetch a range of %q: %w", s.name, err)
	}
	whole := r
	if r = r.upTo(s.all.cfg.Max); r.Count == 0 {
		return &ExhaustedError{Name: s.name, Next: uint64(whole.First), Max: s.all.cfg.Max}
	}
	held := slices.IndexFunc(s.chain, func(h Range) bool { return h.First <= r.Last() && r.First <= h.Last() })
	if r.First > s.floor && held < 0 {
		s.chain = append(s.chain, r)
		slices.SortFunc(s.chain, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
		s.stride = r.Stride
		return nil
	}
	s.dropped++
	switch {
	case r.First > s.floor:
		return fmt.Errorf("%w: %v of %q was dropped: it overlaps %v, which is held", ErrOrder, whole, s.name, s.chain[held])
	case s.floor > asked: // it was being fetched when Raise was called; the next will be above
		return nil
	}
	return fmt.Errorf("%w: %v of %q was dropped: ids up to %d are issued or in use", ErrOrder, whole, s.name, s.floor)
}

// ruleOut drops the ids up to last; no range that begins there is used any more.
func (s *stock) ruleOut(last firn.ID) {
	if s.cell.Load().rest().First <= last {
		s.retire()
	}
	s.floor = max(s.floor, last)
	s.chain = slices.DeleteFunc(s.chain, func(r Range) bool { return r.First <= last })
}

// drain closes the stock and returns the ids at the end of the chain: the last range, and those
// before it that it follows.
func (s *stock) drain() (last Range) {
	s.chain = slices.Insert(s.chain, 0, s.retire()) // which no range follows if it is empty
	for i := 0; i < len(s.chain); {
		last, i = s.joined(i)
	}
	s.chain, s.closed = nil, true
	return last
}

// joined returns range i of the chain joined with those that follow it, and the index after them.
func (s *stock) joined(i int) (run Range, next int) {
	run = s.chain[i]
	for next = i + 1; next < len(s.chain) && s.chain[next].follows(run); next++ {
		run = s.chain[next].after(run)
	}
	return run, next
}

// issued returns how many ids have been issued.
func (s *stock) issued() int64 { return s.spent + s.cell.Load().used() }

// above returns the greatest id held, issued or ruled out.
func (s *stock) above() firn.ID {
	if len(s.chain) > 0 {
		return s.chain[len(s.chain)-1].Last()
	}
	return s.floor
}

// left returns how many ids are in memory.
func (s *stock) left() int64 { return s.cell.Load().rest().Count + s.ahead() }

// ahead returns how many are in the chain.
func (s *stock) ahead() (ids int64) {
	for _, r := range s.chain {
		ids += r.Count
	}
	return ids
}
