package registrar

import (
	"errors"
	"fmt"
	"time"
)

// The sentinels a caller branches on with [errors.Is].
var (
	// ErrOverflow is matched by *[OverflowError]: no machine number is left.
	ErrOverflow = errors.New("no machine number left")
	// ErrNotFound is matched by *[NotFoundError]: the instance has no number.
	ErrNotFound = errors.New("instance without a machine number")
	// ErrLost is matched by *[LostError]: another instance has the number now.
	ErrLost = errors.New("machine number lost")
	// ErrClock is matched by *[ClockError]: the clocks of server and store differ.
	ErrClock = errors.New("clocks differ")
)

// An OverflowError reports that no machine number is left for an instance.
type OverflowError struct {
	Namespace, Instance string
	Total               int // how many numbers there are for this instance
	Own                 int // the number that the instance has, if that is not below Total; else -1

	// Crowded means that numbers are left, but the names of Total instances hash to the record of this one, which is full.
	Crowded bool
}

func (e *OverflowError) Error() string {
	if e.Crowded {
		return fmt.Sprintf("no machine number for instance %q of %q: its record is full of %d other instances; return the numbers of instances that are gone, or use another instance name",
			e.Instance, e.Namespace, e.Total)
	}
	if e.Own >= 0 {
		return fmt.Sprintf("instance %q of %q has machine number %d, which is not below %d: ask for more machine bits, or return the number first",
			e.Instance, e.Namespace, e.Own, e.Total)
	}
	return fmt.Sprintf("no machine number is left in %q for instance %q: all %d are assigned; use more machine bits, or return the numbers of instances that are gone",
		e.Namespace, e.Instance, e.Total)
}

// Is reports whether target is [ErrOverflow].
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }

// A NotFoundError reports that an instance has no machine number: it never had one, or
// returned it.
type NotFoundError struct{ Namespace, Instance string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("instance %q has no machine number in %q: request one first", e.Instance, e.Namespace)
}

// Is reports whether target is [ErrNotFound].
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// A LostError reports that an instance was silent for so long that another instance has
// its number now.
type LostError struct {
	Namespace, Instance string
	Machine             int
}

func (e *LostError) Error() string {
	return fmt.Sprintf("another instance has machine number %d, which instance %q of %q had: stop issuing ids and request a new number",
		e.Machine, e.Instance, e.Namespace)
}

// Is reports whether target is [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost }

// A ClockError reports that the store's clock and this server's are too far apart
// for either to be trusted.
type ClockError struct {
	Store, Server time.Time
	Tolerance     time.Duration
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("the store's clock reads %s and this server's %s, more than %v apart: synchronize them",
		e.Store.UTC().Format(time.RFC3339Nano), e.Server.UTC().Format(time.RFC3339Nano), e.Tolerance)
}

// Is reports whether target is [ErrClock].
func (e *ClockError) Is(target error) bool { return target == ErrClock }

// A refusedError is an error of Instance.New.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }
