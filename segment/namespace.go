package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/outage"
	"github.com/firn-id/firn/internal/turns"
)

// A Namespace issues the ids of one name. Do not copy it. Its methods may be called concurrently. Within this process,
// an id requested after another was received is greater; each process issues its own ranges.
//
// The usual call is one atomic addition. Once part of the range is used up, one caller starts
// to fetch the next; callers wait only if the ids run out first.
type Namespace struct {
	ids  stock
	all  *Segments
	name string

	mu      sync.Mutex // guards all but the use of the cell; never held while waiting
	refill  refill
	outage  outage.Outage
	waiting waiters
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
	SetBacks int64 // times the counter was found below what Config.Memory knows; 0 with a Config.Source
	Err      error // of the latest fetch, nil if it brought a range
}

// String returns the name.
func (n *Namespace) String() string { return n.name }

// Next returns the next id. If no id is in memory it waits for the fetch that all callers share,
// and fails if that fails: with *[ExhaustedError], *[StripeError], *[store.TakenError], [store.ErrForeign], [ErrOrder],
// [ErrSource], the store's error or [firn.ErrClosed]. After any but the last the name stays
// usable, and the store is asked again after a short pause. A [Source] whose ranges lie above
// Max is asked again after about a minute. If ctx ends the wait, the error matches
// ctx.Err() and [context.Cause]; an id in memory is returned even if ctx has ended.
func (n *Namespace) Next(ctx context.Context) (firn.ID, error) {
	c := n.ids.cell.Load()
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
	r, err := n.wait(ctx, &waiter{count: 1})
	return r.First, err
}

// Take takes up to count ids by one atomic addition: at least one, fewer than count if the
// range ends, and at most 1,048,576. Errors are those of Next, and a *[firn.RangeError] for a
// count below 1.
func (n *Namespace) Take(ctx context.Context, count int) (Range, error) {
	if count < 1 {
		return Range{}, outside(n.name, "number of ids", int64(count), 1, math.MaxInt64)
	}
	return n.take(ctx, uint64(min(count, maxTake)), false)
}

// Reserve takes count ids in a row, 1 to 1,048,576, and returns them as a range of
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
	if count < 1 || count > maxTake {
		return Range{}, outside(n.name, "number of ids", int64(count), 1, maxTake)
	}
	if stride := n.all.cfg.Stride; stride != 1 {
		return Range{}, fmt.Errorf("%w: those of %q are %d apart", ErrNotConsecutive, n.name, stride)
	}
	return n.take(ctx, uint64(count), true)
}

// TakeAll takes exactly count ids, 1 to 2^30, and appends them to dst as one or more ranges. If it fails it takes none:
// what is in memory, and what was fetched for it, is left to other callers. It waits as [Namespace.Next] does, whose
// errors it returns, and a *[firn.RangeError] for a count out of range.
func (n *Namespace) TakeAll(ctx context.Context, count int, dst []Range) ([]Range, error) {
	if count < 1 || count > maxTakeAll {
		return dst, outside(n.name, "number of ids", int64(count), 1, maxTakeAll)
	}
	c := n.ids.cell.Load()
	if r := c.exactly(uint64(count)); r.Count > 0 {
		if uint64(r.Last()) >= c.mark.Load() {
			n.look(c)
		}
		return append(dst, r), nil
	}
	w := waiter{count: uint64(count), whole: true}
	_, err := n.wait(ctx, &w)
	if errors.Is(err, ErrExhausted) {
		if left := n.State().Left; left > 0 {
			err = fmt.Errorf("segment: %q has %d ids left, not %d: ask for fewer: %w", n.name, left, count, err)
		}
	}
	return append(dst, w.all...), err
}

// outside is the error of an argument, with the words of package sequence.
func outside(name, what string, value, least, most int64) error {
	return fmt.Errorf("segment %q: %w", name, firn.NewRangeError(what, value, least, most, ""))
}

// take takes up to count ids, or exactly count in a row.
func (n *Namespace) take(ctx context.Context, count uint64, row bool) (Range, error) {
	c := n.ids.cell.Load()
	r := c.claim(count, row)
	if r.Count == 0 {
		return n.wait(ctx, &waiter{count: count, row: row})
	}
	if uint64(r.Last()) >= c.mark.Load() {
		n.look(c)
	}
	return r, nil
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
	_, err := n.wait(ctx, &waiter{})
	return err
}

// look starts a fetch if one is due.
func (n *Namespace) look(c *cell) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids.cell.Load() == c && n.decide() {
		n.all.enqueue(n)
	}
}

// decide reports whether to fetch a range, and sets where the next caller checks. The caller
// holds mu.
func (n *Namespace) decide() bool {
	return !n.ids.closed && n.refill.due(n.ids.cell.Load(), len(n.ids.chain), n.waiting.longest() > 0)
}

// wait returns once w is served, with what it got. Until then it waits for the fetch under way, or a
// new one, and fails if that fails.
func (n *Namespace) wait(ctx context.Context, w *waiter) (Range, error) {
	if n.ask(ctx, w); w.done == nil {
		return w.got, w.err
	}
	if err := turns.Wait(ctx, n.all.cfg.Time, w.done); err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		if left := n.waiting.leave(w); left {
			return Range{}, n.ended(ctx, err)
		}
	}
	return w.got, w.err
}

// ask serves w or lets it fail, or else lets it wait. It starts a fetch if one is due.
func (n *Namespace) ask(ctx context.Context, w *waiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ids.closed:
		w.err = firn.ErrClosed
		return
	case n.ids.serve(w):
	case ctx.Err() != nil:
		w.err = n.ended(ctx, context.Cause(ctx))
		return
	default:
		n.waiting.waits++
		if w.err = n.refill.starve(); w.err != nil {
			return
		}
		n.waiting.join(w)
	}
	if n.decide() {
		n.all.enqueue(n)
	}
}

// ended is the error of a call whose wait ctx has ended, with its cause err.
func (n *Namespace) ended(ctx context.Context, err error) error {
	return turns.Ended(ctx, fmt.Sprintf("segment: wait for ids of %q", n.name), err)
}

// fetch fetches a range, serves callers, and reports whether to fetch again.
func (n *Namespace) fetch(ctx context.Context) (again bool) {
	n.mu.Lock()
	ask := Ask{Step: max(n.refill.size(n.ids.issued()), n.waiting.longest()), Above: n.ids.above()}
	n.mu.Unlock()
	r, err := n.all.source.Fetch(ctx, n.name, ask)

	n.mu.Lock()
	granted := err == nil
	if granted {
		err = n.ids.accept(r, ask.Above)
	} else if errors.Is(ctx.Err(), context.Canceled) { // by Close
		err = firn.ErrClosed
	} else {
		err = overdue(context.Background(), err)
	}
	wasFailing := n.refill.inRow > 0
	n.refill.end(err, granted)
	loud := false
	if err != nil {
		loud = n.outage.Fails(err, n.all.cfg.Time.Monotonic())
	} else {
		n.outage.Ends()
	}
	n.waiting.serve(&n.ids, err)
	left := n.ids.left()
	again = n.decide()
	n.mu.Unlock()

	switch log := n.all.cfg.Log; {
	case loud:
		log.Warn("no range could be fetched", "name", n.name, "left", left, "error", err)
	case err != nil:
		log.Debug("again no range could be fetched", "name", n.name, "left", left, "error", err)
	case wasFailing:
		log.Info("ranges can be fetched again", "name", n.name, "range", r.String())
	default:
		log.Debug("range fetched", "name", n.name, "range", r.String())
	}
	return again
}

// State returns a snapshot, for metrics.
func (n *Namespace) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids, f := &n.ids, &n.refill
	s := State{
		Name: n.name, Last: ids.above(), Left: ids.left(), Issued: ids.issued(), Ranges: len(ids.chain), Dropped: ids.dropped,
		Step: cmp.Or(f.supply.Size, n.all.cfg.MinStep), Depth: f.depth, Fetches: f.fetches, Failures: f.failures, Err: f.err,
		Waits: n.waiting.waits,
	}
	s.SetBacks = n.all.cfg.Memory.Of(n.name).SetBacks()
	now := n.all.cfg.Time.Monotonic()
	s.Rate = f.supply.Rate(now, s.Issued)
	s.Lasts = f.supply.Lasts(now, s.Issued, s.Left)
	return s
}

// stop ends issuing, wakes all callers, and returns the unused ids that can be given back.
func (n *Namespace) stop() (unused Range) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting.serve(&n.ids, firn.ErrClosed)
	return n.ids.drain()
}
