package prefetch

import (
	"context"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// Next returns the next id. If the buffer is empty, it waits until there is an id,
// ctx ends (the error is its cause), the source fails (the error is the source's;
// the buffer keeps trying, see Config.Pause) or the buffer is closed
// ([firn.ErrClosed]).
func (b *Buffer[T]) Next(ctx context.Context) (T, error) {
	if id, ok := b.TryNext(); ok {
		return id, nil
	}
	return b.wait(ctx)
}

// TryNext returns the next id, and false if the buffer is empty; it never waits.
func (b *Buffer[T]) TryNext() (T, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pop()
}

// Take moves buffered ids into dst, as many as fit, and returns how many; it
// never waits.
func (b *Buffer[T]) Take(dst []T) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(dst)
}

// Fill fills dst, and waits as Next does when the buffer runs empty. It returns
// how many ids it wrote, with an error if not all.
func (b *Buffer[T]) Fill(ctx context.Context, dst []T) (int, error) {
	filled := b.Take(dst)
	for filled < len(dst) {
		id, err := b.wait(ctx)
		if err != nil {
			return filled, err
		}
		dst[filled] = id
		filled++
		filled += b.Take(dst[filled:])
	}
	return filled, nil
}

// A waiter is a call that found the buffer empty, between its neighbours in a ring.
type waiter[T any] struct {
	id            T
	served        bool
	before, after *waiter[T]
}

// leave removes the waiter from its ring.
func (w *waiter[T]) leave() { w.before.after, w.after.before = w.after, w.before }

// wait returns the next id once there is one.
func (b *Buffer[T]) wait(ctx context.Context) (T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, ok := b.pop(); ok {
		return id, nil
	}
	b.state.Waits++
	failures := b.state.Failures
	w := &waiter[T]{before: b.waiters.before, after: &b.waiters}
	w.before.after, w.after.before = w, w
	for {
		err := b.failure(failures)
		if err != nil {
			err = fmt.Errorf("prefetch: the buffer is empty: %w", err)
		} else {
			err = b.sleep(ctx)
		}
		if w.served {
			return w.id, nil // the id is this caller's, whatever happened since
		}
		if err != nil {
			w.leave()
			return w.id, err
		}
	}
}

// sleep waits for a change, or until ctx ends. The caller holds mu; sleep unlocks
// it while waiting.
func (b *Buffer[T]) sleep(ctx context.Context) error {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	changed := b.changed
	b.mu.Unlock()
	defer b.mu.Lock()
	return turns.Wait(ctx, b.cfg.Time, changed)
}

// failure returns why waiting is of no use; nil if the caller should wait. Failures
// is State.Failures when the caller arrived. The caller holds mu.
func (b *Buffer[T]) failure(failures int64) error {
	switch {
	case b.closed:
		return firn.ErrClosed
	case b.cfg.Pause > 0 && !b.paused && b.state.Failures == failures:
		return nil // the source is being called again after its pause
	default:
		return b.err
	}
}

func (b *Buffer[T]) take(dst []T) int {
	for n := range dst {
		id, ok := b.pop()
		if !ok {
			return n
		}
		dst[n] = id
	}
	return len(dst)
}

// pop takes the oldest id within MaxAge, and starts a refill if the buffer is low.
// The caller holds mu.
func (b *Buffer[T]) pop() (id T, ok bool) {
	if b.cfg.MaxAge > 0 {
		b.expire()
	}
	if len(b.head) > 0 || b.nextBatch() {
		id, ok = b.head[0], true
		var zero T
		b.head[0] = zero // the batch must not keep an issued string alive
		b.head = b.head[1:]
		b.count--
		b.state.Issued++
	}
	if b.idle != nil && b.wanting() {
		close(b.idle)
		b.idle = nil
	}
	return id, ok
}

// nextBatch moves the next batch to head, and reports whether there is one.
func (b *Buffer[T]) nextBatch() bool {
	if len(b.queue) == 0 {
		b.head = nil
		return false
	}
	b.head, b.made = b.queue[0].ids, b.queue[0].made
	b.queue[0] = batch[T]{}
	b.queue = b.queue[1:]
	return true
}

// expire drops ids older than MaxAge.
func (b *Buffer[T]) expire() {
	if b.count == 0 {
		return
	}
	oldest := b.cfg.Time.Monotonic() - b.cfg.MaxAge
	for b.count > 0 && (len(b.head) == 0 || b.made < oldest) {
		b.count -= len(b.head)
		b.state.Expired += int64(len(b.head))
		b.nextBatch()
	}
}
