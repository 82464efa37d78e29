package segment

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/demand"
	"github.com/firn-id/firn/store/register"
)

// A Namespace issues the ids of one name. Its methods may be called concurrently. Within this process,
// an id requested after another was received is greater; each process issues its own ranges.
//
// The usual call is one atomic addition. Once part of the range is used up, one caller starts
// to fetch the next; callers wait only if the ids run out first.
type Namespace struct {
	cell atomic.Pointer[cell]
	all  *Segments
	name string

	mu       sync.Mutex    // guards all below; never held while waiting
	chain    []Range       // fetched ahead: ascending, disjoint, above floor
	floor    firn.ID       // no range at or below it is used any more
	asked    firn.ID       // the latest fetch was asked to begin above this
	spent    int64         // ids issued from earlier cells
	supply   demand.Supply // its size is 0 until the first fetch
	fetching bool          // a fetch is in progress or queued
	waiting  list.List     // of *waiter, in order of arrival
	starved  bool          // a caller has waited for the fetch in progress; always so for the first
	closed   bool
	stride   int64 // of the latest range accepted, 0 before the first

	inRow     int           // fetches that failed since one succeeded
	notBefore time.Duration // after an error, no further fetch until then
	state     State         // the counters, and Depth
}

// A State is a snapshot of a name.
type State struct {
	Name   string
	Last   firn.ID       // the greatest id issued, held or ruled out; -1 if there is no such id
	Left   int64         // ids in memory
	Lasts  time.Duration // how long they last at the present rate, at most some 292 years
	Rate   float64       // ids issued per second recently
	Issued int64
	Step   int64 // ids the next fetch asks for
	Ranges int   // fetched ahead, not counting the one in use
	Depth  int   // how many of them are wanted once the next is due

	Fetches  int64 // ended, successful or not
	Failures int64 // fetches that brought no range
	Dropped  int64 // ranges dropped for their order
	Waits    int64 // calls that found no id in memory
	Err      error // of the latest fetch, nil if it brought a range
}

// String returns the name.
func (n *Namespace) String() string { return n.name }

// Next returns the next id. If no id is in memory it waits for the fetch that all callers share,
// and fails if that fails: with *[ExhaustedError], *[StripeError], [store.ErrForeign], [ErrOrder],
// [ErrSource], the store's error or [firn.ErrClosed]. After any but the last the name stays
// usable, and the store is asked again after a short pause. A [Source] whose ranges lie above
// Max is asked again after about a minute. If ctx ends the wait, the error is [context.Cause] of
// it; an id in memory is returned even if ctx has ended.
func (n *Namespace) Next(ctx context.Context) (firn.ID, error) {
	c := n.cell.Load()
	stride, mark := c.stride, c.mark.Load() // before the addition, which nothing overtakes
	p := c.word.Add(stride) - stride
	if p < mark {
		return firn.ID(p), nil
	}
	return n.nextSlowly(ctx, c, p)
}

// nextSlowly issues what a caller has claimed at or above the mark, if it lies in the range.
func (n *Namespace) nextSlowly(ctx context.Context, c *cell, p uint64) (firn.ID, error) {
	if p < c.end {
		n.look(c)
		return firn.ID(p), nil
	}
	r, err := n.takeSlowly(ctx, 1)
	return r.First, err
}

// Take takes up to count ids by one atomic addition: at least one, fewer than count if the
// range ends, and at most 1,048,576. Errors are those of Next, and a *[firn.RangeError] for a
// count below 1.
func (n *Namespace) Take(ctx context.Context, count int) (Range, error) {
	if count < 1 {
		return Range{}, firn.NewRangeError("number of ids", int64(count), 1, math.MaxInt64, "")
	}
	want := uint64(min(count, maxTake))
	c := n.cell.Load()
	if r := c.claim(want); r.Count > 0 {
		if uint64(r.Last()) >= c.mark.Load() {
			n.look(c)
		}
		return r, nil
	}
	return n.takeSlowly(ctx, want)
}

// Fill fills ids, waiting as Next does. It returns how many it has filled, and why not all.
func (n *Namespace) Fill(ctx context.Context, ids []firn.ID) (int, error) {
	filled := 0
	for filled < len(ids) {
		r, err := n.Take(ctx, len(ids)-filled)
		if err != nil {
			return filled, err
		}
		r.AppendTo(ids[:filled])
		filled += r.Len()
	}
	return filled, nil
}

// Prepare returns once an id is in memory, so that later calls need not wait or fail. It
// counts as a call that waits. Errors are those of Next.
func (n *Namespace) Prepare(ctx context.Context) error {
	return n.wait(ctx, &waiter{ready: func() bool { return n.left() > 0 }})
}

// takeSlowly takes from the next range, or waits for one.
func (n *Namespace) takeSlowly(ctx context.Context, count uint64) (r Range, err error) {
	err = n.wait(ctx, &waiter{ready: func() bool {
		r = n.take(count)
		return r.Count > 0
	}})
	return r, err
}

// take takes up to count ids from the cell, otherwise from the chain. The caller holds mu.
func (n *Namespace) take(count uint64) Range {
	if r := n.cell.Load().claim(count); r.Count > 0 {
		return r
	}
	n.retire()
	if len(n.chain) == 0 {
		return Range{}
	}
	return n.begin(n.chain[0], 1, count)
}

// retire ends the use of the cell and returns what was not claimed. The caller holds mu.
func (n *Namespace) retire() (rest Range) {
	c := n.cell.Load()
	rest = c.seal()
	n.spent += c.whole.Count - rest.Count
	n.cell.Store(n.all.empty)
	return rest
}

// begin makes r the cell and takes up to count ids from it. Joined is how many ranges at the
// front of the chain r consists of. The caller holds mu.
func (n *Namespace) begin(r Range, joined int, count uint64) Range {
	made := newCell(r, n.all.cfg.Ahead)
	taken := made.claim(count) // before others see the cell, so that this caller gets an id
	n.chain = slices.Delete(n.chain, 0, joined)
	n.floor = r.Last()
	n.cell.Store(made)
	return taken
}

// look starts a fetch if one is due.
func (n *Namespace) look(c *cell) {
	n.mu.Lock()
	fetch := n.cell.Load() == c && n.decide()
	n.mu.Unlock()
	if fetch {
		n.all.enqueue(n)
	}
}

// decide reports whether to fetch a range, and sets where the next caller checks. The caller
// holds mu.
func (n *Namespace) decide() bool {
	c := n.cell.Load()
	word := min(c.word.Load(), c.end)
	mark, wanted := c.end, n.state.Depth
	if word < c.due {
		mark = c.due
		wanted--
	}
	fetch := false
	if !n.closed && !n.fetching && (len(n.chain) < wanted || n.longest() > 0) {
		if n.state.Err != nil && n.all.cfg.Time.Monotonic() < n.notBefore {
			// In an outage, callers check more often as fewer ids are left.
			mark = min(mark, word+max(c.stride, (c.end-word)/16))
		} else {
			n.fetching, fetch = true, true
		}
	}
	c.mark.Store(mark)
	return fetch
}

// issued returns how many ids have been issued. The caller holds mu.
func (n *Namespace) issued() int64 { return n.spent + n.cell.Load().used() }

// above returns the greatest id held or issued. The caller holds mu.
func (n *Namespace) above() firn.ID {
	if len(n.chain) > 0 {
		return n.chain[len(n.chain)-1].Last()
	}
	return n.floor
}

// ask returns what to fetch now.
func (n *Namespace) ask() Ask {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.all.cfg.Time.Monotonic()
	if n.supply.Size == 0 {
		n.supply.Start(now, n.all.limits)
	} else if calm := n.supply.Measure(now, n.issued(), n.all.limits); calm {
		n.state.Depth = max(1, n.state.Depth-1) // no burst: one range less ahead
	}
	n.asked = n.above()
	return Ask{Step: max(n.supply.Size, n.longest()), Above: n.asked}
}

// fetched handles the result of a fetch, serves callers, and reports whether to fetch again.
func (n *Namespace) fetched(r Range, err error) bool {
	n.mu.Lock()
	n.fetching, n.starved = false, false
	n.state.Fetches++
	granted := err == nil
	if granted {
		err = n.accept(r)
	}
	wasFailing := n.inRow > 0
	if n.state.Err = err; err != nil {
		n.state.Failures++
		n.inRow++
		pause := (&register.Backoff{Random: n.all.cfg.Random, Tries: n.inRow - 1}).Next()
		if beyond := new(ExhaustedError); granted && errors.As(err, &beyond) {
			pause = beyondPause // each try wastes a range that another process could use
		}
		n.notBefore = n.all.cfg.Time.Monotonic() + pause
	} else {
		n.inRow = 0
	}
	n.serve(err)
	left := n.left()
	fetch := n.decide()
	n.mu.Unlock()

	switch log := n.all.cfg.Log; {
	case err != nil && !wasFailing: // the first failure in a row: log an outage once per name
		log.Warn("no range could be fetched", "name", n.name, "left", left, "error", err)
	case err != nil:
		log.Debug("again no range could be fetched", "name", n.name, "left", left, "error", err)
	case wasFailing:
		log.Info("ranges can be fetched again", "name", n.name, "range", r.String())
	default:
		log.Debug("range fetched", "name", n.name, "range", r.String())
	}
	return fetch
}

// accept sorts a range into the chain, if it begins above all issued ids and overlaps no other
// range. The caller holds mu.
func (n *Namespace) accept(r Range) error {
	if n.closed {
		return firn.ErrClosed
	}
	if r.Stride == 0 {
		r.Stride = 1
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("segment: fetch a range of %q: %w", n.name, err)
	}
	whole := r
	if r = r.upTo(n.all.cfg.Max); r.Count == 0 {
		return &ExhaustedError{Name: n.name, Next: uint64(whole.First), Max: n.all.cfg.Max}
	}
	held := slices.IndexFunc(n.chain, func(h Range) bool { return h.First <= r.Last() && r.First <= h.Last() })
	if r.First > n.floor && held < 0 {
		n.chain = append(n.chain, r)
		slices.SortFunc(n.chain, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
		n.stride = r.Stride
		return nil
	}
	n.state.Dropped++
	switch {
	case r.First > n.floor:
		return fmt.Errorf("%w: %v of %q was dropped: it overlaps %v, which is held", ErrOrder, whole, n.name, n.chain[held])
	case n.floor > n.asked: // it was being fetched when Raise was called; the next will be above
		return nil
	}
	return fmt.Errorf("%w: %v of %q was dropped: ids up to %d are issued or in use", ErrOrder, whole, n.name, n.floor)
}

// left returns how many ids are in memory. The caller holds mu.
func (n *Namespace) left() int64 {
	left := n.cell.Load().rest().Count
	for _, r := range n.chain {
		left += r.Count
	}
	return left
}

// State returns a snapshot, for metrics.
func (n *Namespace) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.state
	s.Name, s.Last, s.Left, s.Issued, s.Ranges = n.name, n.above(), n.left(), n.issued(), len(n.chain)
	s.Step = cmp.Or(n.supply.Size, n.all.cfg.MinStep)
	now := n.all.cfg.Time.Monotonic()
	s.Rate = n.supply.Rate(now, s.Issued)
	if s.Left > 0 {
		s.Lasts = n.supply.Lasts(now, s.Issued, s.Left)
	}
	return s
}

// beyondPause is the wait after a range that lies above Max.
const beyondPause = time.Minute

// stop ends issuing, wakes all callers, and returns the unused ids at the end of the chain: the
// last range, and those before it that it follows.
func (n *Namespace) stop() (unused Range) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.serve(firn.ErrClosed)
	n.chain = slices.Insert(n.chain, 0, n.retire()) // which no range follows if it is empty
	for i := 0; i < len(n.chain); {
		unused, i = n.joined(i)
	}
	n.chain = nil
	return unused
}
