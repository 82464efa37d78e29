package segment

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn"
)

// The sentinels a caller branches on with [errors.Is].
var (
	// ErrExhausted is matched by *[ExhaustedError]: the name has no ids left.
	ErrExhausted = errors.New("segment: ids exhausted")
	// ErrStripe is matched by *[StripeError]: the name has another stripe.
	ErrStripe = errors.New("segment: name with another stripe")
	// ErrOrder: a range was dropped, because its first id is not above every id issued here, or
	// because it overlaps a held range.
	ErrOrder = errors.New("segment: range out of order")
	// ErrSource: a [Source] broke its contract with an invalid range.
	ErrSource = errors.New("segment: broken source")
	// ErrNotConsecutive: the name has no such ids in a row, because it has a stride or a
	// [Source] whose ranges are shorter than asked for.
	ErrNotConsecutive = errors.New("segment: no consecutive ids")
)

// An ExhaustedError reports that the counter of a name has passed the last id allowed.
type ExhaustedError struct {
	Name string
	Next uint64  // the next id would be this one
	Max  firn.ID // the last id allowed
}

func (e *ExhaustedError) Error() string {
	way := "use another name"
	if e.Max < firn.MaxID {
		way = "raise Max, unless a veil ends there, or " + way
	}
	return fmt.Sprintf("segment: ids of %q are exhausted: the next would be %d, %d is the last allowed; %s",
		e.Name, e.Next, int64(e.Max), way)
}

// Is reports whether target is [ErrExhausted].
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }

// A Stripe is all ids that leave the remainder Offset when divided by Stride.
type Stripe struct {
	Offset, Stride int64
}

// String returns the stripe as "offset 1 of stride 2".
func (s Stripe) String() string { return fmt.Sprintf("offset %d of stride %d", s.Offset, s.Stride) }

// A StripeError reports that the store has another stripe for a name: going on would make duplicates.
type StripeError struct {
	Name       string
	Have, Want Stripe // what the store has, and what is set here
}

func (e *StripeError) Error() string {
	return fmt.Sprintf("segment: %q has %v, not %v: set that of the store, or use another name", e.Name, e.Have, e.Want)
}

// Is reports whether target is [ErrStripe].
func (e *StripeError) Is(target error) bool { return target == ErrStripe }
