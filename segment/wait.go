package segment

import (
	"container/list"
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// A waiter is a caller that waits for the next range. Namespace.mu guards it until done is closed.
type waiter struct {
	ready func() bool   // whether it has what it waits for, or an err; called with mu held
	row   int64         // how many ids in a row it waits for; 0: not for a row
	tries int           // ranges that did not suffice while it was first in line
	place *list.Element // in Namespace.waiting; nil once it was served
	err   error
	done  chan struct{} // closed once it was served
}

// wait returns once w is ready, with its err. Until then it waits for the fetch under way, or a
// new one, and fails if that fails.
func (n *Namespace) wait(ctx context.Context, w *waiter) error {
	fetch, err := n.join(ctx, w)
	if fetch {
		n.all.enqueue(n)
	}
	if w.done == nil {
		return err
	}
	if err := turns.Wait(ctx, n.all.cfg.Time, w.done); err != nil && n.leave(w) {
		return err
	}
	return w.err
}

// join serves w at once, perhaps with an error, or queues it behind the other waiters.
func (n *Namespace) join(ctx context.Context, w *waiter) (fetch bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false, firn.ErrClosed
	}
	if w.ready() {
		return n.decide(), w.err
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	n.state.Waits++
	if n.state.Err != nil && !n.fetching && n.all.cfg.Time.Monotonic() < n.notBefore {
		return false, n.state.Err
	}
	if !n.starved && n.state.Err == nil {
		n.state.Depth = min(n.state.Depth*2, n.all.cfg.Chain) // all waiters for one fetch are one burst
	}
	n.starved = true
	w.done = make(chan struct{})
	w.place = n.waiting.PushBack(w)
	return n.decide(), nil
}

// serve wakes the waiters that are ready, in order of arrival, or all of them with an error. So a
// range goes to those that have waited longest. The caller holds mu.
func (n *Namespace) serve(err error) {
	for place := n.waiting.Front(); place != nil; {
		next := place.Next()
		w, _ := place.Value.(*waiter)
		if place.Prev() == nil {
			w.tries++
		}
		if w.err = err; err != nil || w.ready() {
			n.waiting.Remove(place)
			w.place = nil
			close(w.done)
		}
		place = next
	}
}

// leave removes a caller whose context has ended. It returns false if the caller was already
// served; that stands.
func (n *Namespace) leave(w *waiter) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.place == nil {
		return false
	}
	n.waiting.Remove(w.place)
	return true
}
