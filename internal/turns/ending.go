package turns

import (
	"context"
	"sync"
)

// An Ending ends something once: callers try one after another, until one succeeds. The zero value is ready.
type Ending struct {
	mu   sync.Mutex
	turn chan struct{} // closed when the call of end under way has returned; nil if there is none
	done bool          // a call of end has succeeded
}

// Do calls end, and returns its error. While another caller's end runs it waits, by a time source as [Wait] does, and
// once one has succeeded it returns nil. If ctx ends that wait, the error has the word for what end does.
func (e *Ending) Do(ctx context.Context, timeSource any, did string, end func() error) error {
	for {
		e.mu.Lock()
		busy, done := e.turn, e.done
		if !done && busy == nil {
			e.turn = make(chan struct{})
		}
		e.mu.Unlock()
		switch {
		case done:
			return nil
		case busy == nil:
			return e.try(end)
		}
		if err := Wait(ctx, timeSource, busy); err != nil {
			return Ended(ctx, did, err)
		}
	}
}

// try calls end and lets the next caller go on.
func (e *Ending) try(end func() error) error {
	done := false
	defer func() { // also after a panic, as of a store of the caller's
		e.mu.Lock()
		defer e.mu.Unlock()
		e.done = done
		close(e.turn)
		e.turn = nil
	}()
	err := end()
	done = err == nil
	return err
}
