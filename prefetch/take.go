package prefetch

import (
	"context"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// Next returns the next id. With one at hand it does not wait; else it waits
// until there is one, ctx ends (then the error is its cause), the source fails
// (then it is the source's, and the buffer keeps trying, as Config.Pause has
// it) or the buffer is closed ([firn.ErrClosed]).
func (b *Buffer[T]) Next(ctx context.Context) (T, error) {
	if id, ok := b.TryNext(); ok {
		return id, nil
	}
	return b.wait(ctx)
}

// TryNext returns the next id if one is at hand; it never waits.
func (b *Buffer[T]) TryNext() (T, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pop()
}

// Take moves what is at hand into dst, as much as fits, and returns how much;
// it never waits.
func (b *Buffer[T]) Take(dst []T) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(dst)
}

// Fill fills dst, waiting as Next does where there is not enough at hand. It
// returns how much it has filled, and why not all.
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

// leave takes it out of its ring.
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
			return w.id, nil // it is this caller's, whatever came since
		}
		if err != nil {
			w.leave()
			return w.id, err
		}
	}
}

// sleep waits for a change, or until ctx ends. The caller holds mu, which is
// let go meanwhile.
func (b *Buffer[T]) sleep(ctx context.Context) error {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	changed := b.changed
	b.mu.Unlock()
	defer b.mu.Lock()
	return turns.Wait(ctx, b.cfg.Time, changed)
}

// failure returns why there is no use in waiting; nil if there is. Failures is
// how many there had been when the caller came. The caller holds mu.
func (b *Buffer[T]) failure(failures int64) error {
	switch {
	case b.closed:
		return firn.ErrClosed
	case b.cfg.Pause > 0 && !b.paused && b.state.Failures == failures:
		return nil // what failed before the pause is being tried again
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

// pop takes the oldest id that is not too old, and asks for more below the
// refill mark. The caller holds mu.
func (b *Buffer[T]) pop() (id T, ok bool) {
	if b.cfg.MaxAge > 0 {
		b.expire()
	}
	if len(b.head) > 0 || b.turn() {
		id, ok = b.head[0], true
		var none T
		b.head[0] = none // a text that was issued shall not be kept alive by its batch
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

// turn goes on to the next batch, and reports whether there is one.
func (b *Buffer[T]) turn() bool {
	if len(b.queue) == 0 {
		b.head = nil
		return false
	}
	b.head, b.made = b.queue[0].ids, b.queue[0].made
	b.queue[0] = batch[T]{}
	b.queue = b.queue[1:]
	return true
}

// expire drops ids that have lain too long.
func (b *Buffer[T]) expire() {
	if b.count == 0 {
		return
	}
	oldest := b.cfg.Time.Monotonic() - b.cfg.MaxAge
	for b.count > 0 && (len(b.head) == 0 || b.made < oldest) {
		b.count -= len(b.head)
		b.state.Expired += int64(len(b.head))
		b.turn()
	}
}
