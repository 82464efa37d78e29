package lease

import (
	"errors"
	"fmt"
	"time"
)

// The errors to branch on, with [errors.Is].
var (
	// ErrLost: the worker belongs to another now. It comes from a [Source], a [Loan] and State.Err. Next of
	// a [Lease] does not return it: a lease takes another worker, and without one Next fails with
	// [firn.ErrFence] at the fence, or at once after ErrOverlap or when the fence seemed to have passed.
	ErrLost = errors.New("lease: worker lost")
	// ErrFull is matched by *[FullError]: every worker of the pool is held.
	ErrFull = errors.New("lease: pool full")
	// ErrOverlap comes with ErrLost if another was, or may have been, granted the same ticks: the
	// store has forgotten this grant. No more ids may be issued under it.
	ErrOverlap = errors.New("lease: another may have been granted its ticks")
	// ErrPool is matched by *[PoolError]: the pool has another layout, grace, tolerance or strict wait.
	ErrPool = errors.New("lease: pool with other settings")
	// ErrClock is matched by *[ClockError]: the clock here is wrong.
	ErrClock = errors.New("lease: wrong clock")
)

// A PoolError reports that a pool has another layout, grace, tolerance of clocks or strict wait
// than the process that wants to join. Joining would make duplicates.
type PoolError struct {
	Pool       string
	Have, Want string // the pool's setting, and that of the process
}

func (e *PoolError) Error() string {
	return fmt.Sprintf("pool %q has %s, not %s: use that of the pool, or another pool", e.Pool, e.Have, e.Want)
}

// Is reports whether target is [ErrPool].
func (e *PoolError) Is(target error) bool { return target == ErrPool }

// A FullError reports that every worker of a pool is held.
type FullError struct {
	Pool    string
	Workers int64     // how many the pool has, all of them held
	Next    time.Time // from when the first of them can be leased, unless its holder renews it: see [Pool.FreeAt]
}

func (e *FullError) Error() string {
	return fmt.Sprintf("pool %q is full: all %d workers are held; the next is free at %s, unless its holder renews it",
		e.Pool, e.Workers, e.Next.UTC().Format(time.RFC3339Nano))
}

// Is reports whether target is [ErrFull].
func (e *FullError) Is(target error) bool { return target == ErrFull }

// A ClockError reports clocks that differ by more than the tolerance. Nothing was written.
type ClockError struct {
	Here, There time.Time
	Whose       string // whose clock There is
	Tolerance   time.Duration
}

func (e *ClockError) Error() string {
	word, by := "ahead of", e.Here.Sub(e.There)
	if by < 0 {
		word, by = "behind", -by
	}
	return fmt.Sprintf("the clock here is %v %s %s: %s here, %s there, %v are tolerated; correct the one that is wrong",
		by.Round(time.Millisecond), word, e.Whose,
		e.Here.UTC().Format(time.RFC3339Nano), e.There.UTC().Format(time.RFC3339Nano), e.Tolerance)
}

// Is reports whether target is [ErrClock].
func (e *ClockError) Is(target error) bool { return target == ErrClock }
