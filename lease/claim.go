package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// pick returns the slot to claim, waiting for a pinned one if it must.
func (s *Slots) pick(ctx context.Context, pool Pool, ask Ask) (Slot, error) {
	if s.cfg.Pinned == nil {
		slot, ok := choose(pool, s.cfg.Datacenter, ask.Now, s.cfg.Random)
		if !ok {
			return slot, &FullError{Pool: s.cfg.Pool, Workers: pool.Layout.MaxWorker() + 1, Next: nextFree(pool, s.cfg.Datacenter)}
		}
		return slot, nil
	}
	slot := Slot{Datacenter: s.cfg.Datacenter, Worker: *s.cfg.Pinned, Fence: -1}
	for _, known := range pool.Slots {
		if known.Datacenter == slot.Datacenter && known.Worker == slot.Worker {
			slot = known
		}
	}
	if slot.revision == 0 || slot.Fence < ask.Now || s.cfg.PinnedAhead {
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

// claim moves the slot's fence forward and so takes it.
func (s *Slots) claim(ctx context.Context, pool Pool, slot Slot, ask Ask) (firn.Grant, error) {
	after, err := s.start(slot, ask)
	if err != nil {
		return firn.Grant{}, err
	}
	fence := ask.fence(after, s.cfg.Layout)
	if fence <= after {
		return firn.Grant{}, &firn.TimeExhaustedError{Layout: s.cfg.Layout, End: s.cfg.Layout.End()}
	}
	if s.cfg.Strict > 0 { // see bounded: what is claimed begins after the wait
		fence = min(fence, after+firn.Tick((s.cfg.Strict-s.cfg.Tolerance)/s.cfg.Layout.Unit()))
	}
	h := holding{after: after, fence: fence, since: s.cfg.Time.Wall().UTC()}
	s.numberAbove(slot)
	h.revision, err = s.write(ctx, slot.Worker, slot.revision, h, false)
	switch {
	case err == nil:
	case mayRetry(ctx, err):
		// Another was quicker, or it is not known whether the claim was applied,
		// or will be. Nothing has been issued under it, so another slot is as
		// good; at worst this one stays unused until its fence.
		return firn.Grant{}, fmt.Errorf("%w: %w", errAgain, err)
	default:
		return firn.Grant{}, fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err)
	}
	grant := firn.Grant{Worker: slot.Worker, After: after, Through: fence}
	s.keep(slot.Worker, h)
	if err = s.confirm(ctx, pool, slot, &grant); err == nil {
		return grant, nil
	}
	if errors.Is(err, ErrLost) {
		return firn.Grant{}, fmt.Errorf("%w: %w", errAgain, err)
	}
	if !errors.Is(err, errAgain) {
		err = fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err)
	}
	if slot.revision == 0 {
		// Giving it back would say that nobody has used it, which is not known of
		// a store that may have been wiped. It stays unused until the fence.
		s.forget(slot.Worker, grant.After)
		return firn.Grant{}, err
	}
	return firn.Grant{}, errors.Join(err, s.unclaim(ctx, grant, slot.Fence))
}

// start returns the tick after which a claim of a slot begins: its fence, or later.
func (s *Slots) start(slot Slot, ask Ask) (firn.Tick, error) {
	after := slot.Fence
	if slot.revision == 0 && s.cfg.Grace > 0 {
		// The store may have been wiped, and the worker have had a holder who is gone.
		// Ids that run further ahead of the clock than this have run there elsewhere.
		after = max(after, min(ask.From-1, ask.Now+firn.Tick(s.cfg.Tolerance/s.cfg.Layout.Unit())))
	}
	if s.cfg.Strict > 0 {
		outwaited, err := s.cfg.Layout.Tick(s.cfg.Time.Wall().Add(s.cfg.Strict))
		if err != nil {
			return 0, err
		}
		after = max(after, outwaited)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.starts[slot.Worker]; ok {
		after = max(after, before+1) // see holding
	}
	s.starts[slot.Worker] = after
	return after, nil
}

// confirm makes sure, after a claim was written, that what it rests on holds.
func (s *Slots) confirm(ctx context.Context, pool Pool, slot Slot, grant *firn.Grant) error {
	if s.cfg.Strict > 0 {
		if err := s.outwait(ctx, *grant); err != nil {
			return err
		}
		// The write may have taken long: the wait counts from its end.
		waited, err := s.cfg.Layout.Tick(s.cfg.Time.Wall())
		if err != nil {
			return err
		}
		if grant.After < waited-1 {
			grant.After = waited - 1
			s.begins(grant.Worker, grant.After)
		}
	}
	if slot.revision == 0 && s.cfg.Grace > 0 {
		return s.samePool(ctx, pool)
	}
	return nil
}

// samePool makes sure that a slot which was not there was created in the pool
// that was read, and not in a store wiped since, where its grace is to be waited
// out first: another may have been granted the worker in between.
func (s *Slots) samePool(ctx context.Context, pool Pool) error {
	entry, err := s.cfg.Store.Get(ctx, poolKey(s.cfg.Pool))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if entry.Revision != pool.revision { // 0 if it is gone
		return fmt.Errorf("the record of pool %q changed meanwhile: %w", s.cfg.Pool, errAgain)
	}
	return nil
}

// unclaim gives back a slot under which nothing was issued. It does so in a time
// of its own, as what is wrong may be that ctx has ended.
func (s *Slots) unclaim(ctx context.Context, g firn.Grant, fence firn.Tick) error {
	ctx, cancel := turns.WithTimeout(context.WithoutCancel(ctx), s.cfg.Time, callTimeout)
	defer cancel()
	return s.giveBack(ctx, g, fence)
}
