package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// Renew implements [Source]. Errors: [ErrLost], *[ClockError] and the store's;
// after any but ErrLost the held grant stands.
func (s *Slots) Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	checked, err := s.checkClock(ctx)
	if err != nil {
		return held, err
	}
	ask, err = s.present(ask, checked)
	if err != nil {
		return held, err
	}
	// A second round is for a revision that turned out to be another one of
	// ours: an earlier write whose answer was lost, or an older one restored.
	for range 2 {
		h, err := s.holding(held)
		if err != nil {
			return held, err
		}
		if err := s.ended(held.Worker, h); err != nil {
			return held, err
		}
		fence, err := s.bounded(ask.fence(held.After, s.cfg.Layout))
		if err != nil {
			return held, err
		}
		known := h.revision
		h.fence = max(h.fence, fence)
		h.revision, err = s.write(ctx, held.Worker, known, h, false)
		if err == nil {
			s.keep(held.Worker, h)
			held.Through = max(held.Through, h.fence)
			return held, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return held, fmt.Errorf("lease: renew worker %d of pool %q: %w", held.Worker, s.cfg.Pool, err)
		}
		if err := s.examine(ctx, held); err != nil {
			return held, err
		}
	}
	return held, fmt.Errorf("lease: renew worker %d of pool %q: %w: its slot changed twice meanwhile",
		held.Worker, s.cfg.Pool, store.ErrUnavailable)
}

// Look implements [Source]: it reads the slot. One that vanished is written
// anew with its fence; one that is another's is [ErrLost].
func (s *Slots) Look(ctx context.Context, held firn.Grant) error {
	return s.examine(ctx, held)
}

// Release implements [Source]: it moves the fence back to last, so that the
// worker may be taken again as soon as that has passed. If the store cannot be
// reached the slot stays until its fence has passed, and the error says so.
func (s *Slots) Release(ctx context.Context, held firn.Grant, last firn.Tick) error {
	return s.giveBack(ctx, held, max(last, held.After))
}

// giveBack moves the fence of a slot held back to a tick.
func (s *Slots) giveBack(ctx context.Context, held firn.Grant, fence firn.Tick) error {
	for range 2 {
		h, err := s.holding(held)
		if err != nil {
			return nil // it is another's already, or ours by another claim: there is nothing to give back
		}
		until := h.fence
		h.fence = min(fence, h.fence)
		_, err = s.write(ctx, held.Worker, h.revision, h, true)
		if err == nil {
			s.forget(held.Worker, held.After)
			return nil
		}
		if errors.Is(err, store.ErrConflict) {
			err = s.examine(ctx, held)
			if errors.Is(err, ErrLost) {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("lease: release worker %d of pool %q (it stays held until its fence, %s): %w",
				held.Worker, s.cfg.Pool, s.cfg.Layout.Time(until).Format(time.RFC3339Nano), err)
		}
	}
	return fmt.Errorf("lease: release worker %d of pool %q: %w: its slot changed twice meanwhile",
		held.Worker, s.cfg.Pool, store.ErrUnavailable)
}

// holding returns what is known of the slot that a grant rests on. A worker that
// was lost and claimed again is another holding: what is left to do for the
// earlier one must not touch it.
func (s *Slots) holding(held firn.Grant) (holding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[held.Worker]
	if !ok || h.after != held.After {
		return h, fmt.Errorf("%w: worker %d of pool %q", ErrLost, held.Worker, s.cfg.Pool)
	}
	return h, nil
}

func (s *Slots) keep(worker int64, h holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[worker] = h
}

// begins moves the start of a grant forward.
func (s *Slots) begins(worker int64, after firn.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.held[worker]; ok {
		h.after = after
		s.held[worker], s.starts[worker] = h, after
	}
}

// forget ends the holding of a worker that begins after a tick, and no later one.
func (s *Slots) forget(worker int64, after firn.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[worker].after == after {
		delete(s.held, worker)
	}
}

// examine reads a held slot and acts on what it finds: nil when it is ours,
// with the revision known now, or written anew.
func (s *Slots) examine(ctx context.Context, held firn.Grant) error {
	h, err := s.holding(held)
	if err != nil {
		return err
	}
	worker := held.Worker
	if err := s.ended(worker, h); err != nil {
		return err
	}
	key := slotKey(s.cfg.Pool, s.cfg.Layout, s.cfg.Datacenter, worker)
	entry, err := s.cfg.Store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		if now, tickErr := s.cfg.Layout.Tick(s.cfg.Time.Wall()); tickErr != nil || h.fence < now {
			// Another may have been granted the worker since, and the store have
			// forgotten that too.
			s.forget(worker, h.after)
			return fmt.Errorf("%w: worker %d of pool %q: its slot has vanished after its fence", ErrLost, worker, s.cfg.Pool)
		}
		return s.reassert(ctx, worker, h)
	}
	if err != nil {
		return fmt.Errorf("lease: look at worker %d of pool %q: %w", worker, s.cfg.Pool, err)
	}
	if entry.Revision == h.revision {
		return nil
	}
	var slot Slot
	if err := slot.read(entry); err != nil {
		return err
	}
	if slot.Owner == s.token && slot.after > h.after {
		// Claimed again here, for a switch, whose claim may not be noted yet: it is
		// that one's to keep, and to give back.
		return fmt.Errorf("%w: worker %d of pool %q: it was claimed again here from tick %d on", ErrLost, worker, s.cfg.Pool, slot.after+1)
	}
	if slot.Owner != s.token || slot.Free {
		s.forget(worker, h.after)
		if slot.after != noFence && slot.after < h.fence {
			return fmt.Errorf("%w: %w: worker %d of pool %q was claimed by %s from tick %d on, and is held here up to tick %d",
				ErrLost, ErrOverlap, worker, s.cfg.Pool, slot.holder(), slot.after+1, h.fence)
		}
		if slot.Free {
			return fmt.Errorf("%w: worker %d of pool %q was taken back, or given back by another that had taken it", ErrLost, worker, s.cfg.Pool)
		}
		return fmt.Errorf("%w: worker %d of pool %q was taken by %s", ErrLost, worker, s.cfg.Pool, slot.holder())
	}
	// Ours, by a write whose answer was lost, or an older one that the store
	// has gone back to. Nobody else has had the slot in between, as far as the
	// store knows; the fence confirmed to us stays in force.
	h.revision = entry.Revision
	s.keep(worker, h)
	if slot.Fence >= h.fence {
		return nil
	}
	// An older one: until the store has the fence again that others must not
	// pass, the slot would look idle too early.
	revision, err := s.write(ctx, worker, h.revision, h, false)
	if errors.Is(err, store.ErrConflict) {
		err = fmt.Errorf("%w: somebody wrote its slot meanwhile", store.ErrUnavailable)
	}
	if err != nil {
		return fmt.Errorf("lease: restore the fence of worker %d of pool %q: %w", worker, s.cfg.Pool, err)
	}
	h.revision = revision
	s.keep(worker, h)
	return nil
}

// reassert writes a slot that vanished anew: with the fence confirmed to us and
// no later one, and only if nobody was quicker.
func (s *Slots) reassert(ctx context.Context, worker int64, h holding) error {
	revision, err := s.write(ctx, worker, 0, h, false)
	switch {
	case err == nil:
		h.revision = revision
		s.keep(worker, h)
		return s.remake(ctx)
	case errors.Is(err, store.ErrConflict):
		return fmt.Errorf("lease: re-assert worker %d of pool %q: %w: somebody wrote its slot meanwhile",
			worker, s.cfg.Pool, store.ErrUnavailable)
	default:
		return fmt.Errorf("lease: re-assert worker %d of pool %q: %w", worker, s.cfg.Pool, err)
	}
}

// remake writes the record of a pool whose slots vanished, not open yet if
// newcomers must wait for the other holders.
func (s *Slots) remake(ctx context.Context) error {
	_, err := s.cfg.Store.Get(ctx, poolKey(s.cfg.Pool))
	if errors.Is(err, store.ErrNotFound) {
		_, err = s.makePool(ctx, Pool{})
		if errors.Is(err, errAgain) {
			err = nil // written, or the next look or newcomer will
		}
	}
	if err != nil {
		return fmt.Errorf("lease: re-assert pool %q: %w", s.cfg.Pool, err)
	}
	return nil
}

// numberAbove has our writes be numbered above that of a slot, which ours is to replace: so
// those of a slot go up from owner to owner, and an older copy can be told from a newer one
// without anybody's clock.
func (s *Slots) numberAbove(slot Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = max(s.writes, slot.write)
}

// write writes a slot and finds out whether it was applied: nil for yes,
// [store.ErrConflict] for no. Any other error leaves it open; whoever holds the
// slot learns it at the next look.
func (s *Slots) write(ctx context.Context, worker int64, old store.Revision, h holding, free bool) (store.Revision, error) {
	s.mu.Lock()
	s.writes++
	n := s.writes
	s.mu.Unlock()
	value, err := encode(slotRecord{
		After: h.after, Fence: h.fence, Until: s.cfg.Layout.Time(h.fence), Free: free,
		Owner: s.token, Write: n, Host: s.cfg.Host, PID: s.cfg.PID,
		Since: h.since, At: s.cfg.Time.Wall().UTC(),
	})
	if err != nil {
		return 0, err
	}
	key := slotKey(s.cfg.Pool, s.cfg.Layout, s.cfg.Datacenter, worker)
	written, err := s.cfg.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil || store.Unapplied(err) {
		return written.Revision, err
	}
	for try := range maxReadBacks {
		if try > 0 {
			if s.pause(ctx, try) != nil {
				break
			}
		}
		entry, readErr := s.cfg.Store.Get(ctx, key)
		switch {
		case readErr == nil && bytes.Equal(entry.Value, value):
			return entry.Revision, nil
		case readErr == nil && entry.Revision != old:
			// Another write came between: ours can never be applied any more.
			return 0, fmt.Errorf("%w: %w", store.ErrConflict, err)
		case readErr == nil, errors.Is(readErr, store.ErrNotFound):
			// Not applied so far. It may be yet, so nothing can be concluded.
			return 0, err
		}
	}
	return 0, err
}
