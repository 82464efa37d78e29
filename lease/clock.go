package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn/store"
)

// A reading is what both clocks showed at one moment.
type reading struct {
	wall time.Time
	mono time.Duration
}

func (s *Slots) read() reading { return reading{s.cfg.Time.Wall(), s.cfg.Time.Monotonic()} }

// checkClock compares the wall clock with the store's, if it has one, and returns
// what was compared.
func (s *Slots) checkClock(ctx context.Context) (reading, error) {
	clock, ok := s.cfg.Store.(store.Clock)
	if !ok {
		return s.read(), nil
	}
	before := s.cfg.Time.Monotonic()
	there, err := clock.Now(ctx)
	if err != nil {
		return reading{}, fmt.Errorf("lease: read the store's clock: %w", err)
	}
	here := s.read()
	took := here.mono - before
	if offset := here.wall.Add(-took / 2).Sub(there); offset.Abs() > s.cfg.Tolerance+took/2 { // the answer is about half a round trip old
		return here, &ClockError{Here: here.wall, There: there, Whose: "the store's", Tolerance: s.cfg.Tolerance}
	}
	return here, nil
}

// checkOthers compares the wall clock with what the holders wrote down.
func (s *Slots) checkOthers(pool Pool, here reading) error {
	if there, ok := clockOfOthers(pool); ok && there.Sub(here.wall) > s.cfg.Tolerance {
		return &ClockError{Here: here.wall, There: there, Whose: "that of most holders in pool " + s.cfg.Pool, Tolerance: s.cfg.Tolerance}
	}
	return nil
}

// present returns what was asked some time ago as it would be asked now: a pool's
// grace, a queue of writers and a fence may have been waited for since. What the
// present is follows from a reading that was found right, however the wall clock
// steps: if it was far ahead when this was asked, the fence must not follow it.
func (s *Slots) present(ask Ask, checked reading) (Ask, error) {
	wall := checked.wall.Add(s.cfg.Time.Monotonic() - checked.mono)
	if then := s.cfg.Layout.Time(ask.Now); then.Sub(wall) > s.cfg.Tolerance {
		return ask, &ClockError{Here: then, There: wall, Whose: "itself a moment later", Tolerance: s.cfg.Tolerance}
	}
	if tick, err := s.cfg.Layout.Tick(wall); err == nil && tick > ask.Now {
		ask.Now, ask.From = tick, ask.From+(tick-ask.Now)
	}
	ask.From = min(ask.From, s.cfg.Layout.MaxTick())
	return ask, nil
}
