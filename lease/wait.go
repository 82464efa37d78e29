package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// minWaitLook and maxWaitLook are how long the slot of a pinned worker that is held is
// left alone between two looks of one who waits for it: drawn anew each time, so that
// many who wait do not come together.
const (
	minWaitLook = time.Second
	maxWaitLook = 2 * time.Second
)

// waitFor waits until the slot of a pinned worker may be granted: until its fence has
// passed, or its holder has moved that back. It grants nothing: errHeld has the pool read
// anew, and all decided by that. Looks that fail are no reason to end, as the store is not
// needed before the fence has passed.
func (s *Slots) waitFor(ctx context.Context, slot Slot) error {
	s.cfg.Log.Info("waiting for the fence of a pinned worker", "worker", slot.Worker, "pool", s.cfg.Pool, "holder", slot.holder(), "until", slot.Until)
	for said := false; ; {
		left := endOf(slot.Fence, s.cfg.Layout).Sub(s.cfg.Time.Wall())
		if left <= 0 {
			return errHeld
		}
		look := minWaitLook + time.Duration(s.cfg.Random()%uint64(maxWaitLook-minWaitLook))
		if err := s.cfg.Time.Sleep(ctx, min(left, look)); err != nil {
			return fmt.Errorf("lease: worker %d of pool %q is held by %s until %s, if not renewed; waited for it: %w",
				slot.Worker, s.cfg.Pool, slot.holder(), slot.Until.UTC().Format(time.RFC3339Nano), err)
		}
		if left <= look {
			continue // reading the pool anew tells more
		}
		found, err := s.lookFor(ctx, slot)
		switch {
		case errors.Is(err, ErrForeign):
			return err
		case err != nil && !said && ctx.Err() == nil:
			said = true
			s.cfg.Log.Warn("the slot of a pinned worker cannot be read: waiting for the fence it had", "worker", slot.Worker, "pool", s.cfg.Pool, "error", err)
		}
		slot = found
	}
}

// lookFor reads a slot that is waited for, and returns it as it is to be waited for from
// now on: as it was unless it was written since. A store that forgot the slot, or went back
// to an older copy of it, may still have a holder who has not noticed yet, up to the fence
// that was seen before; newcomers seldom come at that moment, but those who wait always do.
func (s *Slots) lookFor(ctx context.Context, seen Slot) (Slot, error) {
	reg := s.slot(seen.Worker)
	reg.Patience = s.cfg.Patience
	entry, err := reg.Read(ctx)
	if err != nil {
		return seen, err
	}
	found, err := s.parse(entry)
	// Each write of a slot has a greater number than the one that it replaced; what was
	// written over an older copy may have a smaller one, and counts as that.
	if found == nil || found.Write <= seen.Write && found.Fence < seen.Fence {
		return seen, err
	}
	found.Worker = seen.Worker
	return *found, nil
}
