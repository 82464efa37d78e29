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

// Renew implements [Source]. If it cannot move the fence, it still looks at the slot as
// [Source.Look] does. Errors: [ErrLost], *[ClockError] and the store's. After any error but
// ErrLost the held grant is still valid.
func (s *poolSource) Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	return s.keep(ctx, held, &ask)
}

// Look implements [Source]. If the slot vanished, Look writes it again with its fence.
func (s *poolSource) Look(ctx context.Context, held firn.Grant) error {
	_, err := s.keep(ctx, held, nil)
	return err
}

// keep looks at a slot, and twice if the first look restored it: that leaves the fence where it was.
func (s *poolSource) keep(ctx context.Context, held firn.Grant, ask *Ask) (firn.Grant, error) {
	ctx = store.Urgent(ctx)
	held, restored, err := s.look(ctx, held, ask)
	if restored && ask != nil {
		held, _, err = s.look(ctx, held, ask)
	}
	return held, err
}

// look makes one look at a slot, and reports whether that restored it.
func (s *poolSource) look(ctx context.Context, held firn.Grant, ask *Ask) (_ firn.Grant, restored bool, err error) {
	h, err := s.holding(held)
	if err == nil {
		err = h.overlap
	}
	if err != nil {
		return held, false, err
	}
	current := s.beginLook(ctx, h)
	held, restored, err = s.stay(ctx, current, held, ask)
	if err != nil {
		current.failed(err)
	}
	return held, restored, err
}

// stay reads a slot and writes what the rules decide. With an ask, it moves the fence, unless the slot was forgotten: then it
// is restored, with the fence held.
func (s *poolSource) stay(ctx context.Context, current *look, held firn.Grant, ask *Ask) (_ firn.Grant, restored bool, err error) {
	h := current.at
	reg := s.slot(held.Worker)
	reg.Patience = patience(s.cfg.Look)
	var entry store.Entry
	var clockErr error
	if ask == nil {
		entry, err = reg.Read(ctx)
	} else {
		// Newcomers rely on this look: a clock that does not answer must not delay it.
		patient, cancel := turns.WithTimeout(ctx, s.cfg.Generator.Time, patience(s.cfg.Look))
		_, clockErr, err = s.beside(patient, func() (err error) { entry, err = reg.Read(patient); return err })
		cancel()
	}
	var found *Slot
	if err == nil {
		found, err = s.parse(entry)
	}
	if err != nil {
		return held, false, errors.Join(fmt.Errorf("lease: look at worker %d of pool %q: %w", held.Worker, s.cfg.Pool, err), clockErr)
	}
	here := *s.checked.Load()
	wish := h.fence
	if ask != nil && clockErr == nil {
		var now firn.Tick
		if now, clockErr = s.present(*ask, here); clockErr == nil {
			// Bound it by the checked clock: the wish may be ahead of that clock.
			wish = s.rules.bounded(Ask{now, ask.From, ask.Window}.fence(h.after, s.cfg.Generator.Layout), now)
		}
	}
	// A write that only moves the fence must not delay the next look. It is made again at that.
	write, cancel := ctx, func() {}
	if !s.rules.forgot(h, found) {
		write, cancel = turns.WithTimeout(ctx, s.cfg.Generator.Time, patience(s.cfg.Look))
	}
	defer cancel()
	m, err := s.move(write, reg, func(found *Slot) (move, error) {
		m, err := s.rules.stand(h, found, s.latest(here), wish, s.late(h.looked))
		if current.forgot = current.forgot || m.forgot; err == nil && !m.forgot {
			current.counts() // before a write, which may take long
		}
		return m, err
	})
	switch { // the write may have been slow
	case err != nil:
	case m.forgot && s.late(h.looked):
		err = errOverdue
	default:
		err = s.rules.late(h, m, s.latest(here))
	}
	if errors.Is(err, errPast) {
		s.forget(h)
	}
	if err != nil {
		err = fmt.Errorf("lease: keep worker %d of pool %q: %w", held.Worker, s.cfg.Pool, err)
		if errors.Is(err, ErrOverlap) {
			s.change(h, func(h *holding) { h.overlap = err })
		}
		return held, false, err
	}
	current.counts()
	s.change(h, func(h *holding) { h.fence = max(h.fence, m.fence) })
	if clockErr == nil {
		held.Through = m.fence
	}
	return held, m.forgot && clockErr == nil, clockErr
}

// move writes what decide returns for a slot, and returns it once confirmed. If the store has less than
// it had confirmed, move first makes newcomers wait: other holders may not have noticed the loss yet.
func (s *poolSource) move(ctx context.Context, reg *register.Register, decide func(found *Slot) (move, error)) (m move, err error) {
	warned := false
	written, err := reg.Update(ctx, func(entry store.Entry) ([]byte, error) {
		found, err := s.parse(entry)
		if err == nil {
			m, err = decide(found)
		}
		if err == nil && m.forgot {
			if !warned {
				why := "the store has less than it had confirmed"
				if found != nil && found.Gone && found.revision != m.over {
					why = "an operator took back a worker whose holder was not gone"
				} else {
					s.setBacks.Add(1)
				}
				s.cfg.Log.Warn(why+": newcomers are made to wait", "pool", s.cfg.Pool, "worker", m.worker)
				warned = true
			}
			err = s.alarm(ctx) // at each try: the store may have been set back again
		}
		if err != nil || !m.write {
			return nil, err
		}
		return s.encode(m, found)
	})
	m.life = written.Life
	return m, err
}

// alarm makes newcomers wait: the store may have forgotten other holders too. It also writes a closed
// pool again: newcomers may have begun their wait before this loss.
func (s *poolSource) alarm(ctx context.Context) error {
	reg := s.register(poolKey(s.cfg.Pool))
	reg.Patience = patience(s.cfg.Look)
	_, err := reg.Update(ctx, func(found store.Entry) ([]byte, error) {
		record := s.rules.closed(s.cfg.Generator.Time.Wall())
		if found.Revision != 0 {
			there, err := readRecord(found)
			if err != nil {
				return nil, err
			}
			// The first newcomer after the loss may have another layout, whose ids equal those of
			// this holder; another grace, too short for it; or a weaker strict wait than others have.
			if there.agrees(record) == nil {
				there.Strict = max(there.Strict, record.Strict)
				record = there
			}
		}
		record.Open = false
		return register.Encode(record)
	})
	if err != nil {
		return fmt.Errorf("make newcomers wait: %w", err)
	}
	return nil
}

// Release implements [Source]: it moves the fence back to last, so that the worker can be claimed
// as soon as that tick has passed. If Release fails, the slot stays held until its fence.
func (s *poolSource) Release(ctx context.Context, held firn.Grant, last firn.Tick) error {
	ctx = store.Urgent(ctx)
	h, err := s.holding(held)
	if err != nil {
		return nil // another process has it, or this one by another claim: there is nothing to release
	}
	last = max(last, h.after)
	leave := func(found *Slot) (move, error) {
		m := s.rules.leave(h, found, s.latest(*s.checked.Load()), last)
		if m.write && !m.forgot { // a loss must make newcomers wait first, which may fail
			h.given = true
			s.change(h, func(h *holding) { h.given = true })
		}
		return m, nil
	}
	if _, err := s.move(ctx, s.slot(h.worker), leave); err != nil {
		return fmt.Errorf("lease: release worker %d of pool %q (it stays held until its fence, %s): %w",
			h.worker, s.cfg.Pool, s.cfg.Generator.Layout.Time(h.fence).Format(time.RFC3339Nano), err)
	}
	s.forget(h)
	return nil
}

// holding returns the holding of a grant: late calls for an earlier grant must not touch a later one.
func (s *poolSource) holding(held firn.Grant) (holding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[held.Worker]
	if !ok || h.after != held.After {
		return holding{}, fmt.Errorf("%w: worker %d of pool %q", ErrLost, held.Worker, s.cfg.Pool)
	}
	return h, nil
}

// holds reports whether this process has a worker, perhaps one that it has lost or is about to leave.
func (s *poolSource) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) > 0
}

// change updates a holding, if it is still held.
func (s *poolSource) change(of holding, to func(*holding)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.held[of.worker]; ok && h.after == of.after {
		to(&h)
		s.held[of.worker] = h
	}
}

// forget ends a holding, but not a later one of the same worker.
func (s *poolSource) forget(h holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h.worker].after == h.after {
		delete(s.held, h.worker)
	}
}

func (s *poolSource) register(key string) *register.Register {
	return &register.Register{Store: s.cfg.Store, Key: key, Time: s.cfg.Generator.Time, Random: s.cfg.Generator.Random}
}

func (s *poolSource) slot(worker int64) *register.Register {
	return s.register(slotKey(s.cfg.Pool, s.cfg.Generator.Layout, s.cfg.Generator.Datacenter, worker))
}

// replace writes over exactly one revision of a register; errAgain: another process wrote first.
func replace(ctx context.Context, reg *register.Register, over store.Revision, value func() ([]byte, error)) (store.Entry, error) {
	reg.Known(store.Entry{Key: reg.Key, Revision: over})
	return reg.Update(ctx, func(found store.Entry) ([]byte, error) {
		if found.Revision != over && !reg.Ours() {
			return nil, errAgain
		}
		return value()
	})
}

// parse reads a slot's record; nil if there is no record, or a blank one.
func (s *poolSource) parse(entry store.Entry) (*Slot, error) {
	if entry.Revision == 0 {
		return nil, nil
	}
	found := &Slot{Datacenter: s.cfg.Generator.Datacenter}
	if err := found.read(entry, s.cfg.Generator.Layout); err != nil || found.blank() {
		return nil, err
	}
	return found, nil
}

// encode makes a slot's record. Its number is above that of the record it replaces, and so grows from
// owner to owner: an older copy can be detected without a clock.
func (s *poolSource) encode(m move, over *Slot) ([]byte, error) {
	s.mu.Lock()
	if over != nil {
		s.writes = max(s.writes, over.Write)
	}
	s.writes++
	n := s.writes
	s.mu.Unlock()
	return register.Encode(Slot{
		After: m.after, Fence: m.fence, Until: s.cfg.Generator.Layout.Time(m.fence), Free: m.free, Taken: m.taken, Gone: m.gone,
		Owner: s.rules.token, Write: n, Host: s.cfg.Host, PID: s.cfg.PID,
		Since: m.since, At: s.cfg.Generator.Time.Wall().UTC(),
	})
}
