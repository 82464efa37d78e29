package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// A reading is what both clocks showed at one moment. After a checked reading, time follows the
// monotonic clock, as the wall clock may be set.
type reading struct {
	wall  time.Time
	mono  time.Duration
	there time.Time // the latest that the store's clock may have shown then, if it has one
}

func readingOf(clock firn.TimeSource) reading {
	return reading{wall: clock.Wall(), mono: clock.Monotonic()}
}

func (s *poolSource) read() reading { return readingOf(s.cfg.Generator.Time) }

// until returns how much time has passed up to a later reading, by either clock: one of them stands still while the
// machine sleeps, the other may be set.
func (r reading) until(later reading) time.Duration {
	return max(later.mono-r.mono, later.wall.Round(0).Sub(r.wall.Round(0)))
}

// wall returns the present time: a reading plus the monotonic time since.
func (s *poolSource) wall(from reading) time.Time {
	return from.wall.Add(s.cfg.Generator.Time.Monotonic() - from.mono)
}

// latest returns the present tick by a reading or by the wall clock, whichever is later: the safe side
// for judging whether a fence has passed.
func (s *poolSource) latest(from reading) firn.Tick {
	return max(tickOf(s.cfg.Generator.Layout, s.wall(from)), tickOf(s.cfg.Generator.Layout, s.cfg.Generator.Time.Wall()))
}

// maxClockTries bounds how often the store's clock is read because it answered late.
const maxClockTries = 3

// checkClock compares the wall clock with the store's, if it has one. The store may have read its clock
// at any moment of the round trip, so half of that counts as uncertainty.
func (s *poolSource) checkClock(ctx context.Context) (reading, error) {
	clock := s.cfg.Store.Traits().Clock
	if clock == nil {
		return s.check(s.read()), nil
	}
	for try := 1; ; try++ {
		before := s.cfg.Generator.Time.Monotonic()
		there, err := clock.Now(ctx)
		if err != nil {
			return reading{}, fmt.Errorf("lease: read the store's clock: %w", err)
		}
		here := s.read()
		half := (here.mono - before) / 2
		offset := here.wall.Add(-half).Sub(there)
		switch {
		case half <= s.cfg.Tolerance && offset.Abs() <= s.cfg.Tolerance-half: // the sum overflows for a clock that is centuries away
			here.there = there.Add(half)
			return s.check(here), nil
		case offset.Abs()-half > s.cfg.Tolerance: // whenever the store read its clock; otherwise a quicker answer may tell
			return reading{}, &ClockError{Here: here.wall.Add(-half), There: there, Whose: "the store's", Tolerance: s.cfg.Tolerance}
		case try == maxClockTries:
			return reading{}, fmt.Errorf("lease: %w", turns.Fault(ctx, store.ErrUnavailable,
				fmt.Errorf("the store's clock took %v to answer, too long to compare the clock here within the tolerance of %v", 2*half, s.cfg.Tolerance)))
		}
	}
}

// check records a reading that passed the check.
func (s *poolSource) check(here reading) reading {
	s.checked.Store(&here)
	return here
}

// beside checks the clock while do asks the store something else.
func (s *poolSource) beside(ctx context.Context, do func() error) (here reading, clockErr, err error) {
	checked := make(chan struct{})
	turns.Go(s.cfg.Generator.Time, func() {
		defer close(checked)
		here, clockErr = s.checkClock(ctx)
	})
	err = do()
	// The check ends with ctx. Its results must not be read before it has.
	waitErr := turns.Wait(context.WithoutCancel(ctx), s.cfg.Generator.Time, checked)
	return here, errors.Join(clockErr, waitErr), err
}

// present returns the present tick, by a checked reading: time may have passed since the ask, and the
// clock may have been wrong then.
func (s *poolSource) present(ask Ask, checked reading) (firn.Tick, error) {
	wall := s.wall(checked)
	if then := s.cfg.Generator.Layout.Time(ask.Now); then.Sub(wall) > s.cfg.Tolerance {
		return 0, &ClockError{Here: then, There: wall, Whose: "itself a moment later", Tolerance: s.cfg.Tolerance}
	}
	return tickOf(s.cfg.Generator.Layout, wall), nil
}
