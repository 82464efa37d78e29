package cli

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

// found has the results of one or more callers.
type found struct {
	ids     int64
	took    time.Duration
	calls   histogram // durations of calls
	slow    int64     // calls that took longer than slowCall
	unbegun int64     // calls that were due but never began, since all callers were busy
}

// slowCall is a delay that a person waiting for an id notices.
const slowCall = 50 * time.Millisecond

// add counts a timed call.
func (f *found) add(took time.Duration) {
	f.calls.Add(took)
	if took > slowCall {
		f.slow++
	}
}

// merge adds the results of another caller.
func (f *found) merge(other *found) {
	f.ids += other.ids
	f.calls.Merge(&other.calls)
	f.slow += other.slow
}

const (
	// keptAtOnce is how many ids a caller collects before it adds them to the shared set.
	keptAtOnce = 1024
	// seldom is how many calls there are for each timed one, if reading the clock costs as much as an id. It is prime, so
	// that timed calls do not always fall on the same place in a tick or range.
	seldom = 61
	// always: every call is timed.
	always = 1
)

// errTimeOver is the cause with which a benchmark's context ends on time.
var errTimeOver = errors.New("the time is over")

// into returns a function that adds ids to set, or does nothing if they are not verified.
func (l load) into(set *idset.Set) func([]firn.ID) {
	return func(ids []firn.ID) {
		if l.verify {
			set.Add(ids)
		}
	}
}

// show returns the progress of the benchmark, nil without a terminal.
func (l load) show() *progress { return newProgress(l.progress, "measured", "ids", 0, l.duration) }

// A fill makes one call of what is measured. It fills ids and returns how many it filled.
type fill func(ctx context.Context, ids []firn.ID) (int, error)

// drive runs callers that call fill until the time is over. One of every so many calls is timed. The ids of each call
// go to record.
func drive(ctx context.Context, l load, every int, f fill, record func([]firn.ID)) (all found, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.duration, errTimeOver)
	defer cancel()
	var stop atomic.Bool
	context.AfterFunc(ctx, func() { stop.Store(true) })
	start := time.Now()
	p := l.show()
	defer p.end()
	all, err = l.each(ctx, f, record, func(ctx context.Context, c *caller) error {
		for call := 0; !stop.Load(); call++ {
			var began time.Time
			timed := call%every == 0
			if timed {
				began = time.Now()
			}
			if err := c.call(ctx); err != nil {
				return err
			}
			if timed {
				c.timed(began, p)
			}
		}
		return nil
	})
	all.took = time.Since(start)
	return all, err
}

// A caller makes calls and counts them by itself: a shared counter would cost more than an id.
type caller struct {
	fill   fill
	record func([]firn.ID)
	size   int // of a call
	buffer []firn.ID
	found  found
	shown  int64 // of the ids found, in the progress
}

// timed counts a call that is over, and shows its ids and those before: for each id that would cost too much.
func (c *caller) timed(began time.Time, p *progress) {
	c.found.add(time.Since(began))
	p.add(c.found.ids - c.shown)
	c.shown = c.found.ids
}

// call makes one call.
func (c *caller) call(ctx context.Context) error {
	n, err := c.fill(ctx, c.buffer[len(c.buffer):len(c.buffer)+c.size])
	c.buffer = c.buffer[:len(c.buffer)+n]
	c.found.ids += int64(n)
	if len(c.buffer)+c.size > cap(c.buffer) {
		c.record(c.buffer)
		c.buffer = c.buffer[:0]
	}
	return err
}

// each runs loop in every caller. It returns the results of all, and the first error: later errors are the same, or
// follow from it. The end of the context is not an error.
func (l load) each(ctx context.Context, f fill, record func([]firn.ID), loop func(context.Context, *caller) error) (all found, first error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		group sync.WaitGroup
	)
	for range l.callers {
		group.Go(func() {
			c := &caller{fill: f, record: record, size: l.size(), buffer: make([]firn.ID, 0, max(l.size(), keptAtOnce)+l.size())}
			err := loop(ctx, c)
			record(c.buffer)
			mu.Lock()
			defer mu.Unlock()
			all.merge(&c.found)
			if ended := ctx.Err() != nil && errors.Is(err, context.Cause(ctx)); err != nil && !ended && first == nil {
				first = err
				cancel()
			}
		})
	}
	group.Wait()
	return all, first
}
