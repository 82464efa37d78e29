// Package turns starts background work and waits for it, so that a simulation can decide the order:
// it uses goroutines, channels and timers, or a [firn.TimeSource] that is a [Scheduler].
//
// Users of this package wait only through it or the time source, and never while they hold a lock.
// Then one seed replays everything.
package turns

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Scheduler decides the order of events in a simulation.
type Scheduler interface {
	// Go runs do beside the caller.
	Go(do func())
	// Wait returns nil once done is closed, or the cause of ctx if that ends first.
	Wait(ctx context.Context, done <-chan struct{}) error
	// WithTimeout is [context.WithTimeout].
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// A Manual is embedded by clocks that a test moves. Outside of this module no clock becomes one by its methods.
type Manual struct{}

// MovedByTest marks such a clock.
func (Manual) MovedByTest() Manual { return Manual{} }

// Own is embedded by the causes with which a store ends its own calls. Outside of this module no cause becomes one by its
// methods.
type Own struct{}

// EndedByStore marks such a cause.
func (Own) EndedByStore() Own { return Own{} }

// IsOwn reports whether a cause is one with which a store has ended its own call.
func IsOwn(cause error) bool {
	_, ok := cause.(interface{ EndedByStore() Own })
	return ok
}

// Idle returns the wait of background work by a clock that a test moves. Its Sleep moves the clock, since a caller waits
// for that; Idle does not. False: of another clock.
func Idle(timeSource any) (func(ctx context.Context, d time.Duration) error, bool) {
	c, ok := timeSource.(interface {
		MovedByTest() Manual
		Idle(ctx context.Context, d time.Duration) error
	})
	if !ok {
		return nil, false
	}
	return c.Idle, true
}

// Go runs do beside the caller.
func Go(timeSource any, do func()) {
	if s, ok := timeSource.(Scheduler); ok {
		s.Go(do)
		return
	}
	go do()
}

// Wait returns nil once done is closed, or the cause of ctx if that ends first. If both have happened,
// it returns nil.
func Wait(ctx context.Context, timeSource any, done <-chan struct{}) error {
	if s, ok := timeSource.(Scheduler); ok {
		return s.Wait(ctx, done)
	}
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ended is the error of a call that ctx has ended in a wait: what it did, and err, the cause of ctx. It also
// matches ctx.Err(), which callers test for.
func Ended(ctx context.Context, did string, err error) error {
	if of := ctx.Err(); of != nil && !errors.Is(err, of) {
		return fmt.Errorf("%s: %w: %w", did, of, err)
	}
	return fmt.Errorf("%s: %w", did, err)
}

// Fault is err with a kind that blames others, such as that the store is unavailable: then callers try again. If ctx has
// ended, nobody else is to blame: the error matches ctx.Err() and the cause of ctx instead of the kind.
func Fault(ctx context.Context, kind, err error) error {
	switch of := ctx.Err(); {
	case of == nil:
		return fmt.Errorf("%w: %w", kind, err)
	case errors.Is(err, of):
		return err
	default:
		return fmt.Errorf("%w; %w", err, Ended(ctx, "then the call ended", context.Cause(ctx)))
	}
}

// WithTimeout is [context.WithTimeout], by the clock of a simulation if there is one.
func WithTimeout(ctx context.Context, timeSource any, d time.Duration) (context.Context, context.CancelFunc) {
	if s, ok := timeSource.(Scheduler); ok {
		return s.WithTimeout(ctx, d)
	}
	return context.WithTimeout(ctx, d)
}
