package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/register"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// pick returns the slot to claim, waiting for a pinned one if it must.
func (s *Slots) pick(ctx context.Context, pool Pool, ask Ask) (Slot, error) {
	if s.cfg.Pinned == nil {
		slot, ok := choose(pool, s.cfg.Datacenter, ask.Now, s.cfg.Random)
		if !ok {
			return Slot{}, &FullError{Pool: s.cfg.Pool, Workers: pool.Layout.MaxWorker() + 1, Next: nextFree(pool, s.cfg.Datacenter)}
		}
		return slot, nil
	}
	slot := pool.slot(s.cfg.Datacenter, *s.cfg.Pinned)
	if slot.Fence < ask.Now || s.cfg.PinnedAhead {
		return slot, nil
	}
	return slot, s.waitFor(ctx, slot)
}

// holder names who holds a slot, for people.
func (s Slot) holder() string {
	if s.Host == "" {
		return "process " + s.Owner
	}
	return fmt.Sprintf("process %d on %s", s.PID, s.Host)
}

// claim moves the slot's fence forward and so takes it, if what the claim rests on still
// holds after that: the pool, the life of the store and, in a strict pool, the claim itself
// once it was waited for.
func (s *Slots) claim(ctx context.Context, pool Pool, slot Slot, ask Ask) (firn.Grant, error) {
	h, err := s.begin(slot, ask, s.rules.above(pool, ask))
	if err != nil {
		return firn.Grant{}, err
	}
	reg := s.slot(slot.Worker)
	written, err := replace(ctx, reg, slot.revision, func() ([]byte, error) { return s.encode(move{holding: h}, &slot) })
	if err != nil {
		// A store that refused it, or is not to be had however long it was waited for, is not
		// asked again.
		again := !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrUnavailable)
		if !store.Unapplied(err) {
			// It is not known whether the claim was applied, or will be. Nothing was issued
			// under it; at worst the worker stays unused until its fence.
			err = errors.Join(err, s.unclaim(ctx, h, slot))
		}
		if again {
			return firn.Grant{}, fmt.Errorf("%w: %w", errAgain, err)
		}
		return firn.Grant{}, fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err)
	}
	if s.rules.strict > 0 {
		h, err = s.outwait(ctx, reg, h, ask)
	}
	if err == nil {
		err = s.unmoved(ctx, pool, written.Life)
	}
	switch {
	case err == nil:
		s.hold(h)
		return firn.Grant{Worker: h.worker, After: h.after, Through: h.fence}, nil
	case errors.Is(err, ErrLost):
		return firn.Grant{}, fmt.Errorf("%w: %w", errAgain, err)
	}
	return firn.Grant{}, errors.Join(fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err), s.unclaim(ctx, h, slot))
}

// begin decides what is claimed of a slot, above a tick.
func (s *Slots) begin(slot Slot, ask Ask, above firn.Tick) (holding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.starts[slot.Worker]; ok {
		above = max(above, before+1) // no two claims of a worker here begin alike: see holding
	}
	h, err := s.rules.claim(slot, ask, above)
	if err == nil {
		s.starts[slot.Worker] = h.after
	}
	h.since = s.cfg.Time.Wall().UTC()
	return h, err
}

// hold notes what was confirmed. Until then an earlier holding of the same worker, which was
// lost, is still looked at.
func (s *Slots) hold(h holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[h.worker], s.starts[h.worker] = h, max(s.starts[h.worker], h.after)
}

// outwait waits until whoever may have held the worker by a claim that the store
// has lost has reached its fence, and then writes this one again over exactly what it
// was. So a claim that was lost meanwhile is noticed — others may have claimed in
// between — and one that is lost later has begun its window at that write, not before.
// The clock is checked again, since the machine may have slept.
func (s *Slots) outwait(ctx context.Context, reg *register.Register, h holding, ask Ask) (holding, error) {
	s.cfg.Log.Info("a strict pool: waiting for holders that the store may have forgotten", "pool", s.cfg.Pool, "for", s.rules.wait())
	if err := s.cfg.Time.Sleep(ctx, s.rules.wait()); err != nil {
		return h, fmt.Errorf("wait %v, as the pool is strict: %w", s.rules.wait(), err)
	}
	here, err := s.checkClock(ctx)
	if err != nil {
		return h, err
	}
	// The clock that was checked, and not the wall clock of a later moment: a fence
	// that follows a step of that lies further ahead than newcomers wait.
	now := tickOf(s.cfg.Layout, s.wall(here))
	reg.Forget()
	m, err := s.move(ctx, reg, func(found *Slot) (move, error) {
		if found != nil && reg.Ours() {
			found.after = h.after // this very update wrote it, and it is yet to be confirmed
		}
		return s.rules.outwaited(h, found, now, ask)
	})
	if err != nil {
		return h, err
	}
	return m.holding, nil
}

// unclaim gives a slot under which nothing was issued the fence that it had before. It does
// so in a time of its own, as what is wrong may be that ctx has ended.
func (s *Slots) unclaim(ctx context.Context, h holding, before Slot) error {
	ctx, cancel := turns.WithTimeout(context.WithoutCancel(ctx), s.cfg.Time, s.cfg.Patience)
	defer cancel()
	_, err := s.move(ctx, s.slot(h.worker), func(found *Slot) (move, error) { return s.rules.unclaim(h, found, before), nil })
	if err != nil {
		return fmt.Errorf("leave worker %d as it was (it stays unused until %s): %w", h.worker, s.cfg.Layout.Time(h.fence).Format(time.RFC3339Nano), err)
	}
	return nil
}
