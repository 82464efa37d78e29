package prefetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/turns"
)

// run fills the buffer whenever it is low, until ctx ends.
func (b *Buffer[T]) run(ctx context.Context) {
	defer close(b.done)
	var scratch []T
	failures := 0
	for ctx.Err() == nil {
		room, idle := b.room()
		if idle != nil {
			if turns.Wait(ctx, b.cfg.Time, idle) != nil {
				return
			}
			continue
		}
		if len(scratch) < room {
			scratch = make([]T, room)
		}
		n, err := b.ask(ctx, scratch[:room])
		ids := scratch[:n:n]
		if n < len(scratch)/2 {
			ids = slices.Clone(ids) // a few ids must not keep a large array alive
		} else {
			scratch = nil
		}
		if b.put(ids, n < room, err) {
			failures = 0
			continue
		}
		failures++
		if b.backOff(ctx, failures) != nil {
			return
		}
	}
}

// room returns how many ids to ask for, or a channel that is closed once the buffer is low.
func (b *Buffer[T]) room() (room int, idle <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wanting() {
		b.supply.Measure(b.cfg.Time.Monotonic(), b.state.Issued, b.cfg.limits())
	}
	// Check again: Measure may have made the buffer smaller.
	if b.wanting() || b.partly && b.count < b.size() {
		b.state.Fills++
		return b.size() - b.count, nil
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	return 0, b.idle
}

// ask calls the source once and checks that it keeps its contract. It uses ids that come with an error.
func (b *Buffer[T]) ask(ctx context.Context, dst []T) (int, error) {
	n, err := b.cfg.Source.Fill(ctx, dst)
	switch {
	case n < 0 || n > len(dst):
		return 0, fmt.Errorf("broken source: Fill returned %d for a slice of %d", n, len(dst))
	case n == 0 && err == nil:
		return 0, errors.New("broken source: Fill returned 0 ids and no error")
	}
	return n, err
}

// put stores the ids that the source made, and reports whether there are any. Partly: fewer than asked.
func (b *Buffer[T]) put(ids []T, partly bool, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.partly = partly && err == nil
	b.notify()
	if len(ids) == 0 {
		b.err = err
		b.state.Failures++
		b.paused = b.cfg.Pause > 0
		return false
	}
	b.err = nil // the next call asks for the rest, and reports its own error
	if ids = b.serve(ids); len(ids) > 0 {
		made := batch[T]{ids: ids}
		if b.cfg.MaxAge > 0 {
			made.made = b.cfg.Time.Monotonic()
		}
		b.queue = append(b.queue, made)
		b.count += len(ids)
	}
	return true
}

// backOff waits after a failure before the source is called again. Error: the buffer is closed.
func (b *Buffer[T]) backOff(ctx context.Context, failures int) error {
	d := b.cfg.Pause
	if d == 0 {
		d = min(minBackoff<<min(failures-1, 16), maxBackoff)
	}
	if err := b.cfg.Time.Sleep(ctx, d/2+time.Duration(b.cfg.Random()%uint64(d))); err != nil {
		return err
	}
	if b.cfg.Pause == 0 {
		return nil
	}
	b.mu.Lock()
	b.paused = false
	idle := make(chan struct{})
	b.idle = idle // closed by the next call that finds the buffer wanting
	b.mu.Unlock()
	return turns.Wait(ctx, b.cfg.Time, idle)
}
