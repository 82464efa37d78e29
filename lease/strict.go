package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// outlasts refuses a strict wait that is shorter than what a holder may issue
// beyond the present.
func (s *Slots) outlasts(cfg Config) error {
	if s.cfg.Strict == 0 {
		return nil
	}
	if cfg.Generator.Clock == firn.Virtual {
		return firn.NewSyntaxError("clock", "virtual", "in a strict pool ids follow a clock: steady and wall are allowed")
	}
	window := cfg.Window
	if window == 0 {
		window = defaultWindow
	}
	// A holder gives a worker up a tolerance before its fence, and renews between a
	// half and a quarter of the window before it.
	if least := 4 * s.cfg.Tolerance; window < least {
		return &firn.RangeError{What: "window", Value: window.String(), Min: least.String(), Max: maxWindow.String(),
			Where: "in a strict pool it must be four times the tolerance"}
	}
	unit := cfg.Generator.Layout.Unit()
	if least := window + cfg.Generator.Lead() + s.cfg.Tolerance + 2*unit; s.cfg.Strict < least {
		return &firn.RangeError{What: "strict wait", Value: s.cfg.Strict.String(), Min: least.String(), Max: (2 * maxWindow).String(),
			Where: "window, lead and tolerance together"}
	}
	return nil
}

// outwait waits until whoever may have held the worker by a claim that the store
// has lost has reached its fence, and then looks whether this one still stands as
// it was written. The look comes after the wait, so that a claim lost meanwhile is
// noticed — it is not written anew, since others may have claimed in between — and
// one that is lost later has begun its window at the look, not before.
func (s *Slots) outwait(ctx context.Context, held firn.Grant) error {
	s.cfg.Log.Info("a strict pool: waiting for holders that the store may have forgotten", "pool", s.cfg.Pool, "for", s.cfg.Strict)
	if err := s.cfg.Time.Sleep(ctx, s.cfg.Strict); err != nil {
		return fmt.Errorf("wait %v, as the pool is strict: %w", s.cfg.Strict, err)
	}
	h, err := s.holding(held)
	if err != nil {
		return err
	}
	entry, err := s.cfg.Store.Get(ctx, slotKey(s.cfg.Pool, s.cfg.Layout, s.cfg.Datacenter, held.Worker))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if entry.Revision != h.revision { // 0 if it is gone
		s.forget(held.Worker, held.After)
		return fmt.Errorf("%w: worker %d of pool %q: its slot changed while the claim waited", ErrLost, held.Worker, s.cfg.Pool)
	}
	return nil
}

// bounded returns a fence that is no further ahead of the clock than newcomers
// to a strict pool wait, but for the tolerance. A generator that runs ahead of its
// clock further than that waits at its fence.
func (s *Slots) bounded(fence firn.Tick) (firn.Tick, error) {
	if s.cfg.Strict == 0 {
		return fence, nil
	}
	most, err := s.cfg.Layout.Tick(s.cfg.Time.Wall().Add(s.cfg.Strict - s.cfg.Tolerance))
	return min(fence, most), err
}

// ended gives a worker up in a strict pool once its fence has passed, by any
// clock within the tolerance: another may have been granted it since, whatever the
// store says by now. It has to be claimed anew, and so outwaited.
func (s *Slots) ended(worker int64, h holding) error {
	if s.cfg.Strict == 0 {
		return nil
	}
	if now, err := s.cfg.Layout.Tick(s.cfg.Time.Wall().Add(s.cfg.Tolerance)); err == nil && h.fence > now {
		return nil
	}
	s.forget(worker, h.after)
	return fmt.Errorf("%w: worker %d of pool %q: its fence has passed, or will within the tolerance, and the pool is strict",
		ErrLost, worker, s.cfg.Pool)
}
