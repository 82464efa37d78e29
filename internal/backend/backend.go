// Package backend has what stores share: how a write's revision is drawn and written
// before its value, calls that end with their context, and errors that say where they
// came from.
package backend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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

// Draw returns the revision of a write, at random and never 0, if key and value are within
// the bounds of package store.
func Draw(key string, value []byte) (store.Revision, error) {
	if err := store.CheckKey(key); err != nil {
		return 0, err
	}
	return store.Revision(rand.Int64() | 1), store.CheckValue(key, value)
}

// Digits writes a revision as 16 hexadecimal digits.
func Digits(r store.Revision) string { return fmt.Sprintf("%016x", uint64(r)) }

// Encode writes a register as text: its revision, a line feed, its value.
func Encode(r store.Revision, value []byte) string { return Digits(r) + "\n" + string(value) }

// Decode is the way back. ok is false for what Encode does not make.
func Decode(text string) (r store.Revision, value []byte, ok bool) {
	digits, rest, ok := strings.Cut(text, "\n")
	n, err := strconv.ParseUint(digits, 16, 64)
	return store.Revision(n), []byte(rest), ok && err == nil && len(digits) == len(Digits(0))
}

// Calls are the calls of one store, whose client does not look at contexts while it
// waits for an answer.
type Calls struct {
	name     string
	classify func(error) (hint string, kind error)
	inFlight chan struct{}
	closed   atomic.Bool
}

// NewCalls returns the calls of a store with a name, whose errors classify tells apart.
func NewCalls(name string, classify func(error) (hint string, kind error)) *Calls {
	return &Calls{name: name, classify: classify, inFlight: make(chan struct{}, maxCalls)}
}

// Close refuses all later calls. It reports whether it is the first to do so.
func (c *Calls) Close() bool { return !c.closed.Swap(true) }

// Closed reports whether Close was called.
func (c *Calls) Closed() bool { return c.closed.Load() }

// Wrap is [Wrap] of an error that classify knows.
func (c *Calls) Wrap(op, key string, err error) error {
	hint, kind := c.classify(err)
	return Wrap(c.name, op, key, err, hint, kind)
}

// Do makes a call that ends with ctx, or after 10 s, and wraps its error. A call whose
// context has ended is abandoned: Do returns, and the client's own time-out ends what is in
// flight. The context of do is then canceled, so that no other request follows.
func Do[T any](ctx context.Context, c *Calls, op, key string, do func(context.Context) (T, error)) (T, error) {
	value, err := bounded(ctx, c, do)
	if err != nil {
		err = c.Wrap(op, key, err)
	}
	return value, err
}

func bounded[T any](ctx context.Context, c *Calls, do func(context.Context) (T, error)) (T, error) {
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

// Wrap says where an error came from, what kind it is unless it has one of package store's
// already, and a way out if one is known.
func Wrap(where, op, key string, err error, hint string, kind error) error {
	if hint != "" {
		hint = " (" + hint + ")"
	}
	for _, of := range []error{store.ErrNotFound, store.ErrConflict, store.ErrRefused, store.ErrUnavailable} {
		if errors.Is(err, of) {
			kind = nil
		}
	}
	if kind == nil {
		return fmt.Errorf("%s: %s %q: %w%s", where, op, key, err, hint)
	}
	return fmt.Errorf("%s: %s %q: %w: %w%s", where, op, key, kind, err, hint)
}
