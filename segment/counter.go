package segment

import (
	"context"
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
	if err := CheckName(name); err != nil {
		return Counter{}, err
	}
	entry, err := s.Get(ctx, Key(name))
	if err != nil {
		return Counter{}, fmt.Errorf("segment: read the counter of %q: %w", name, err)
	}
	c, err := readCounter(entry)
	return c.Counter, err
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

// raise is [RaiseCounter] for a least of up to 2^63. A counter that is further is written
// too. Who holds its last range may give that back, to below least, as long as the record
// is the one that granted it; and what was read may be a write that the store will lose.
func (c *counters) raise(ctx context.Context, name string, least uint64) (Counter, error) {
	if err := CheckName(name); err != nil {
		return Counter{}, err
	}
	raised := Counter{Stripe: c.stripe}
	_, err := c.register(name).Update(ctx, func(found store.Entry) ([]byte, error) {
		now, err := c.read(name, found)
		if err != nil {
			return nil, err
		}
		raised.Next = max(c.stripe.from(least), now.Next)
		return c.encode(raised.Next, 0)
	})
	if err != nil {
		return Counter{}, explain("raise the counter of", name, err)
	}
	return raised, nil
}
