// Package backend has what stores over a client library share: calls that end with
// their context, and errors that say where they came from.
package backend

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	// callTimeout bounds a call whose context does not end earlier.
	callTimeout = 10 * time.Second
	// maxCalls bounds the calls in flight, abandoned ones included.
	maxCalls = 256
)

// Calls are the calls of one store, whose client does not look at contexts while it
// waits for an answer.
type Calls struct {
	inFlight chan struct{}
	closed   atomic.Bool
}

// NewCalls returns the calls of a store that is open.
func NewCalls() *Calls { return &Calls{inFlight: make(chan struct{}, maxCalls)} }

// Close refuses all later calls. It reports whether it is the first to do so.
func (c *Calls) Close() bool { return !c.closed.Swap(true) }

// Closed reports whether Close was called.
func (c *Calls) Closed() bool { return c.closed.Load() }

// Do makes a call that ends with ctx, or after 10 s. A call whose context has ended is
// abandoned: Do returns, and the client's own time-out ends what is in flight. The
// context of do is then canceled, so that no other request follows.
func Do[T any](ctx context.Context, c *Calls, do func(context.Context) (T, error)) (T, error) {
	var none T
	if err := store.ContextError(ctx); err != nil {
		return none, err
	}
	if c.Closed() {
		return none, fmt.Errorf("%w: the store is closed", store.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("%w: no answer within %v", store.ErrUnavailable, callTimeout))
	defer cancel()
	select {
	case c.inFlight <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("%w (%d calls in flight)", store.ContextError(ctx), maxCalls)
	}
	// Without the deadline: a client that fails at the same moment would hide it.
	awaited, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := do(awaited)
		<-c.inFlight
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, store.ContextError(ctx)
	}
}

// Wrap says where an error came from, what kind it is if it is of one, and a way out if
// one is known.
func Wrap(where, op, key string, err error, hint string, kind error) error {
	if hint != "" {
		hint = " (" + hint + ")"
	}
	if kind == nil || errors.Is(err, kind) {
		return fmt.Errorf("%s: %s %q: %w%s", where, op, key, err, hint)
	}
	return fmt.Errorf("%s: %s %q: %w: %w%s", where, op, key, kind, err, hint)
}
