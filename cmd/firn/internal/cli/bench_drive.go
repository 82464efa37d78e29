package cli

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/cmd/firn/internal/latency"
)

// found is what callers have found together.
type found struct {
	ids   int64
	took  time.Duration
	calls latency.Histogram // of how long calls took
}

const (
	// keptAtOnce is how many ids a caller gathers before it puts them into the set.
	keptAtOnce = 1024
	// seldom times one of so many calls, where reading the clock costs as much as
	// an id; a prime, so as not to keep step with ticks and ranges.
	seldom = 61
	// always times every call.
	always = 1
)

// errTimeOver ends a benchmark.
var errTimeOver = errors.New("the time is over")

// into keeps ids in set, if they are to be verified.
func (l load) into(set *idset.Set) func([]firn.ID) {
	return func(ids []firn.ID) {
		if l.verify {
			set.Add(ids)
		}
	}
}

// drive lets callers fill their buffers from fill until the time is over, times
// one of every so many calls, and hands what each made to keep.
func drive(ctx context.Context, l load, every int, fill func(context.Context, []firn.ID) (int, error), keep func([]firn.ID)) (found, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.duration, errTimeOver)
	defer cancel()
	var (
		stop  atomic.Bool
		mu    sync.Mutex
		all   found
		first error // the others say the same, or were ended by it
		group sync.WaitGroup
	)
	context.AfterFunc(ctx, func() { stop.Store(true) })
	start := time.Now()
	for range l.callers {
		group.Go(func() {
			size := max(l.size(), keptAtOnce)
			buffer := make([]firn.ID, 0, size+l.size())
			var mine found // counting together would cost more than an id
			var failed error
			for call := 0; !stop.Load() && failed == nil; call++ {
				var began time.Time
				timed := call%every == 0
				if timed {
					began = time.Now()
				}
				n, err := fill(ctx, buffer[len(buffer):len(buffer)+l.size()])
				if timed && err == nil {
					mine.calls.Add(time.Since(began))
				}
				buffer = buffer[:len(buffer)+n]
				mine.ids += int64(n)
				if ended := ctx.Err() != nil && errors.Is(err, context.Cause(ctx)); err != nil && !ended {
					failed = err
					cancel()
				}
				if len(buffer) >= size {
					keep(buffer)
					buffer = buffer[:0]
				}
			}
			keep(buffer)
			mu.Lock()
			defer mu.Unlock()
			all.ids += mine.ids
			all.calls.Merge(&mine.calls)
			if first == nil {
				first = failed
			}
		})
	}
	group.Wait()
	all.took = time.Since(start)
	return all, first
}
