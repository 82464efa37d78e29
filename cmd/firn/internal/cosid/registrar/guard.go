package registrar

import (
	"context"
	"errors"

	"github.com/firn-id/firn/store"
)

// Guard notes that an instance is alive, and its safe-guard time in milliseconds, at
// least 1. Errors: *[NotFoundError], *[LostError], *[ClockError], [store.ErrForeign] and the
// store's.
func (r *Registrar) Guard(ctx context.Context, of Instance, guard int64) error {
	if err := check(of, guard); err != nil {
		return err
	}
	return r.try(ctx, "guard instance", of, func() error {
		now, err := r.now(ctx)
		if err != nil {
			return err
		}
		_, id, m, err := r.pointedTo(ctx, of)
		switch {
		case err != nil:
			return err
		case m.Held && m.Instance != of.Name:
			return &LostError{Namespace: of.Namespace, Instance: of.Name, Machine: id}
		case !m.Held:
			return &NotFoundError{Namespace: of.Namespace, Instance: of.Name}
		}
		m.Stamp = max(m.Stamp, now)
		m.setGuard(guard)
		m, err = r.setMachine(ctx, of.Namespace, id, m)
		if err != nil {
			return err
		}
		r.note(of.Namespace, id, m)
		return nil
	})
}

// Revert gives an instance's number back. A stable instance keeps it, and is noted to
// have been alive until now. One that was handed out as stable is given back for
// good by an instance that is not: the way to free the number of one that is gone.
// Errors: *[NotFoundError], *[ClockError], [store.ErrForeign] and the store's. It is no error
// if another instance has the number by now. A Distribute for the same instance at the same
// time may come before it or after; the protocol does not tell two processes of one name apart.
func (r *Registrar) Revert(ctx context.Context, of Instance) error {
	if err := check(of, Forever); err != nil {
		return err
	}
	var released store.Revision // what this call gave back; whoever holds it later has it anew
	return r.try(ctx, "revert instance", of, func() error {
		now, err := r.now(ctx)
		if err != nil {
			return err
		}
		p, id, m, err := r.pointedTo(ctx, of)
		if released != 0 && (errors.Is(err, ErrNotFound) || err == nil && m.revision != released) {
			return nil
		}
		if err != nil {
			return err
		}
		// Also where it is free already: that may be a write of an earlier try, which the
		// store has not confirmed.
		if released == 0 && m.Instance == of.Name && (m.Held || !of.Stable) {
			m.Stamp = max(m.Stamp, now)
			m.Held = of.Stable
			m.Stable = of.Stable && m.Stable
			if m, err = r.setMachine(ctx, of.Namespace, id, m); err != nil {
				return err
			}
			r.note(of.Namespace, id, m)
			if of.Stable {
				return nil
			}
			released = m.revision
			r.cfg.Log.Info("machine number given back", "namespace", of.Namespace, "instance", of.Name, "machine", id)
		}
		// From here on the number may be another's. Where this write fails for good, the
		// place points to a number that is free or another's: the next call sees that.
		_, err = r.setPlace(ctx, of.Namespace, of.Name, p.without(of.Name))
		return err
	})
}
