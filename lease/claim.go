package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// pick returns the slot to claim. For a pinned worker it may wait.
func (s *poolSource) pick(ctx context.Context, pool Pool, ask Ask) (Slot, error) {
	if s.cfg.Pinned != nil {
		return s.pickPinned(ctx, pool, ask)
	}
	slot, ok := s.rules.choose(pool, s.cfg.Generator.Datacenter, ask, s.cfg.Generator.Random)
	switch {
	case !ok && !pool.part.whole():
		return Slot{}, errPart
	case !ok:
		return Slot{}, &FullError{Pool: s.cfg.Pool, Workers: pool.Layout.MaxWorker() + 1, Next: s.rules.nextIdle(pool, s.cfg.Generator.Datacenter)}
	}
	return slot, nil
}

// pickPinned returns the slot of the pinned worker or else the first idle one of its spares. A holder that
// wants another worker does not wait, if it has spares: the next policy may serve its callers at once.
func (s *poolSource) pickPinned(ctx context.Context, pool Pool, ask Ask) (Slot, error) {
	pinned := pool.slot(s.cfg.Generator.Datacenter, *s.cfg.Pinned)
	next := s.rules.idleAt(pinned)
	if s.rules.idle(pinned, ask.Now) {
		return pinned, nil
	}
	for _, spare := range s.cfg.Spares {
		slot := pool.slot(s.cfg.Generator.Datacenter, spare)
		if s.rules.idle(slot, ask.Now) {
			return slot, nil
		}
		if at := s.rules.idleAt(slot); at.Before(next) {
			next = at
		}
	}
	switch {
	case len(s.cfg.Spares) > 0 && s.holds():
		return Slot{}, &FullError{Pool: s.cfg.Pool, Workers: int64(1 + len(s.cfg.Spares)), Next: next}
	case s.cfg.PinnedAhead:
		return pinned, nil
	}
	return pinned, s.waitFor(ctx, pinned)
}

// A process that waits for a pinned worker reads its slot at random intervals between these, so that
// many do not read at once.
const (
	minWaitLook = time.Second
	maxWaitLook = 2 * time.Second
)

// waitFor waits until the fence of a pinned worker has passed, or its holder has moved it back. It
// grants nothing: after errHeld the caller reads the pool again. A failed read does not end the wait,
// as the store is not needed before the fence has passed.
func (s *poolSource) waitFor(ctx context.Context, slot Slot) error {
	s.cfg.Log.Info("waiting for the fence of a pinned worker", "worker", slot.Worker, "pool", s.cfg.Pool, "holder", slot.holder(), "until", s.rules.idleAt(slot))
	for warned := false; ; {
		left := s.rules.idleAt(slot).Sub(s.cfg.Generator.Time.Wall())
		if left <= 0 {
			return errHeld
		}
		look := minWaitLook + time.Duration(s.cfg.Generator.Random()%uint64(maxWaitLook-minWaitLook))
		if err := s.cfg.Generator.Time.Sleep(ctx, min(left, look)); err != nil {
			return turns.Ended(ctx, fmt.Sprintf("lease: worker %d of pool %q is held by %s and can be leased from %s, if not renewed; waited for it",
				slot.Worker, s.cfg.Pool, slot.holder(), s.rules.idleAt(slot).UTC().Format(time.RFC3339Nano)), err)
		}
		if left <= look {
			continue // the fence has passed
		}
		found, err := s.lookFor(ctx, slot)
		switch {
		case errors.Is(err, store.ErrForeign):
			return err
		case err != nil && !warned && ctx.Err() == nil:
			warned = true
			s.cfg.Log.Warn("the slot of a pinned worker cannot be read: waiting for the fence it had", "worker", slot.Worker, "pool", s.cfg.Pool, "error", err)
		}
		slot = found
	}
}

// lookFor reads the slot that waitFor waits for, and returns the slot to wait for from now on. If the
// store forgot the slot, or was set back to an older copy, that is the one seen before: a holder that
// has not noticed may still use ticks up to its fence.
func (s *poolSource) lookFor(ctx context.Context, seen Slot) (Slot, error) {
	reg := s.slot(seen.Worker)
	reg.Patience = patience(s.cfg.Look)
	entry, err := reg.Read(ctx)
	if err != nil {
		return seen, err
	}
	found, err := s.parse(entry)
	// A write has a greater number than the one it replaced. A write over an older copy may have a
	// smaller number, and then counts as older.
	if found == nil || found.Write <= seen.Write && found.Fence < seen.Fence {
		return seen, err
	}
	found.Worker = seen.Worker
	return *found, nil
}

// claim takes a slot by moving its fence forward. Afterwards it checks that the pool, the life of the
// store and, in a strict pool, the claim itself are still what they were.
func (s *poolSource) claim(ctx context.Context, pool Pool, slot Slot, ask Ask) (firn.Grant, error) {
	h, err := s.begin(slot, ask, s.rules.above(pool, ask))
	if err != nil {
		return firn.Grant{}, err
	}
	reg := s.slot(slot.Worker)
	written, err := replace(ctx, reg, slot.revision, func() ([]byte, error) { return s.encode(move{holding: h}, &slot) })
	if err != nil {
		if store.Unapplied(err) && !reg.Unsettled() {
			s.unbegin(h)
		}
		retry := !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrUnavailable)
		if !store.Unapplied(err) {
			// It may be applied, even later. At worst the worker stays unused until its fence.
			err = errors.Join(err, s.unclaim(ctx, h, slot))
		}
		err = fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err)
		if retry {
			err = again(ctx, err)
		}
		return firn.Grant{}, err
	}
	if s.rules.strict > 0 {
		h, err = s.outwait(ctx, reg, h, ask)
	}
	if err == nil {
		err = s.unmoved(ctx, pool, written.Life)
	}
	if err == nil {
		s.hold(h)
		return firn.Grant{Worker: h.worker, After: h.after, Through: h.fence}, nil
	}
	// Whatever err is: it may be the cause of ctx, which may be any error.
	return firn.Grant{}, errors.Join(fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err), s.unclaim(ctx, h, slot))
}

// begin decides which ticks above a given tick to claim of a slot.
func (s *poolSource) begin(slot Slot, ask Ask, above firn.Tick) (holding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.starts[slot.Worker]; ok {
		above = max(above, before+1) // no two claims of a worker in this process have the same start: see holding
	}
	h, err := s.rules.claim(slot, ask, above)
	if err == nil {
		s.starts[slot.Worker] = h.after
	}
	h.looked = s.read()
	h.since = h.looked.wall.UTC()
	return h, err
}

// unbegin forgets the start of a claim that was certainly never written. Otherwise every lost race for
// a slot would delay the next claim by a tick, and a tick may be long.
func (s *poolSource) unbegin(h holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starts[h.worker] == h.after {
		s.starts[h.worker] = h.after - 1
	}
}

// hold records a confirmed claim. Until then looks are at an earlier, lost holding of the worker.
func (s *poolSource) hold(h holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.held[h.worker]; !ok || before.after <= h.after { // otherwise two requests have taken over one loan
		s.held[h.worker] = h
	}
	s.starts[h.worker] = max(s.starts[h.worker], h.after)
}

// outwait waits until every holder whose claim the store has lost has reached its fence. Then it checks
// the clock again, since the machine may have slept, and writes this claim over exactly its own record.
// So it notices if the claim was lost during the wait, when others may have claimed; and if it is lost
// later, its window began at that write.
func (s *poolSource) outwait(ctx context.Context, reg *register.Register, h holding, ask Ask) (holding, error) {
	s.cfg.Log.Info("a strict pool: waiting for holders that the store may have forgotten", "pool", s.cfg.Pool, "for", s.rules.wait())
	if err := s.cfg.Generator.Time.Sleep(ctx, s.rules.wait()); err != nil {
		return h, fmt.Errorf("wait %v, as the pool is strict: %w", s.rules.wait(), err)
	}
	here, err := s.checkClock(ctx)
	if err != nil {
		return h, err
	}
	// By the checked clock: a stepped one could put the fence further ahead than newcomers wait.
	now := tickOf(s.cfg.Generator.Layout, s.wall(here))
	reg.Forget()
	m, err := s.move(ctx, reg, func(found *Slot) (move, error) {
		if found != nil && reg.Ours() {
			found.After = h.after // this update wrote it, and its confirmation is pending
		}
		return s.rules.outwaited(h, found, now, ask)
	})
	if err != nil {
		return h, err
	}
	return m.holding, nil
}

// unclaim restores the previous fence of a slot under which no id was issued, even if ctx has ended.
func (s *poolSource) unclaim(ctx context.Context, h holding, before Slot) error {
	ctx, cancel := turns.WithTimeout(context.WithoutCancel(ctx), s.cfg.Generator.Time, patience(s.cfg.Look))
	defer cancel()
	if _, err := s.move(ctx, s.slot(h.worker), func(found *Slot) (move, error) { return s.rules.unclaim(h, found, before), nil }); err != nil {
		return fmt.Errorf("leave worker %d as it was (it stays unused until %s): %w", h.worker, s.cfg.Generator.Layout.Time(h.fence).Format(time.RFC3339Nano), err)
	}
	return nil
}
