package segment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// A Counter is where the ids of a name go on, as a store has it.
type Counter struct {
	// Next is where the next range begins: above the last id, by a stride at
	// most, where there are none left.
	Next   uint64
	Stripe Stripe
}

// ReadCounter returns the counter of name and writes nothing. Errors:
// [store.ErrNotFound] where there is none, [ErrForeign], *[firn.SyntaxError] for
// what is no name, and the store's.
func ReadCounter(ctx context.Context, s store.Store, name string) (Counter, error) {
	now, _, err := lookUp(ctx, s, name)
	return now.Counter, err
}

// A looked is a counter as it was found.
type looked struct {
	Counter
	granted bool // its record granted a range, which may be given back
}

// lookUp returns the counter of name and the revision of its record.
func lookUp(ctx context.Context, s store.Store, name string) (looked, store.Revision, error) {
	if err := CheckName(name); err != nil {
		return looked{}, 0, err
	}
	entry, err := s.Get(ctx, Key(name))
	if err != nil {
		return looked{}, 0, fmt.Errorf("segment: read the counter of %q: %w", name, err)
	}
	c, err := readCounter(entry)
	return looked{Counter{Next: c.next, Stripe: c.stripe}, c.granted}, entry.Revision, err
}

// RaiseCounter sees to it that the counter of name is not below least, as for
// taking over from another system: it makes one where there is none, and lowers none.
// It may be called any number of times. It returns the counter as it is then.
// Processes go on with the ranges that they hold, and give none of them back. Errors are those of
// ReadCounter but the first, *[StripeError] where the counter has another stripe, and
// *[firn.RangeError].
func RaiseCounter(ctx context.Context, s store.Store, name string, least firn.ID, stripe Stripe) (Counter, error) {
	cfg := Config{Store: s, Offset: stripe.Offset, Stride: stripe.Stride}
	if err := cfg.check(); err != nil {
		return Counter{}, err
	}
	if least < 0 {
		return Counter{}, firn.NewRangeError("least id", int64(least), 0, math.MaxInt64, "")
	}
	return newCounters(&cfg).raise(ctx, name, uint64(least))
}

// raise is [RaiseCounter] for a least of up to 2^63.
func (c *counters) raise(ctx context.Context, name string, least uint64) (Counter, error) {
	var last error
	for try := range maxTries {
		if try > 0 {
			if err := c.pause(ctx, try); err != nil {
				return Counter{}, fmt.Errorf("segment: raise the counter of %q: %w (%w)", name, err, last)
			}
		}
		now, revision, err := lookUp(ctx, c.store, name)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return Counter{}, err
		case err == nil && now.Stripe != c.stripe:
			return Counter{}, &StripeError{Name: name, Have: now.Stripe, Want: c.stripe}
		case err == nil && now.Next >= least && !now.granted:
			return now.Counter, nil // also where an earlier write was applied, whose answer was lost
		}
		// A counter that is further is written too: who holds its last range may give that
		// back, to below least, as long as the record is the one that granted it.
		raised := Counter{Next: max(now.Next, c.stripe.from(least)), Stripe: c.stripe}
		value, err := c.encode(raised.Next, 0)
		if err != nil {
			return Counter{}, err
		}
		_, err = c.store.CompareAndSwap(ctx, Key(name), revision, value)
		switch {
		case err == nil:
			return raised, nil
		case store.Unapplied(err) && !errors.Is(err, store.ErrConflict), ctx.Err() != nil:
			return Counter{}, fmt.Errorf("segment: raise the counter of %q: %w", name, err)
		}
		last = err
	}
	return Counter{}, fmt.Errorf("segment: raise the counter of %q: %w: %d tries (%w)", name, store.ErrUnavailable, maxTries, last)
}
