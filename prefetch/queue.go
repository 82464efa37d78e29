package prefetch

import (
	"time"

	"github.com/firn-id/firn/internal/demand"
)

// A batch is the ids of one call of the source.
type batch[T any] struct {
	ids  []T
	made time.Duration
}

// A waiter is a call that found the buffer empty.
type waiter[T any] struct {
	id     T
	served bool
}

func (cfg *Config[T]) limits() demand.Limits {
	return demand.Limits{Least: int64(cfg.MinSize), Most: int64(cfg.Size), Target: cfg.Target}
}

// size is how many ids the buffer should hold now; cfg.Size bounds it.
func (b *Buffer[T]) size() int { return int(b.supply.Size) }

// wanting reports whether the buffer should be filled. The caller holds mu.
func (b *Buffer[T]) wanting() bool {
	// Below the size: a full buffer needs no refill. The product does not fit in an int of 32 bits.
	refill := int64(b.cfg.Refill) * b.supply.Size / int64(b.cfg.Size)
	return int64(b.count) <= min(refill, b.supply.Size-1)
}

// pop takes the oldest id within MaxAge, and starts a refill if the buffer is low. The caller holds mu.
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

// serve gives one id to each waiter, in order, and returns the ids left over. If it only woke the
// waiters, their ids might expire before they run, and be made again and again. The caller holds mu.
func (b *Buffer[T]) serve(ids []T) []T {
	for len(ids) > 0 && b.waiters.Len() > 0 {
		w, _ := b.waiters.Remove(b.waiters.Front()).(*waiter[T])
		var zero T
		w.id, w.served, ids[0] = ids[0], true, zero
		ids = ids[1:]
		b.state.Issued++
	}
	return ids
}

// notify wakes all waiters. The caller holds mu.
func (b *Buffer[T]) notify() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
