package registrar

import (
	"context"
	"errors"

	"github.com/firn-id/firn/store"
)

// Guard records that an instance is alive, and its safe-guard time in milliseconds, at
// least 1. Errors: [ErrNotFound], [ErrLost], [ErrClock], [store.ErrForeign] and the
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
		_, id, m, err := r.lookUp(ctx, of)
		switch {
		case err != nil:
			return err
		case m.Held && m.Instance != of.Name:
			return refuse(ErrLost, "another instance has machine number %d, which instance %q of %q had: stop issuing ids and request a new number", id, of.Name, of.Namespace)
		case !m.Held:
			return notFound(of)
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

// Revert returns an instance's number. If the call says that the instance is stable, the
// instance keeps the number, and Revert only records that it was alive until now. A call that
// does not say so returns the number of a stable instance too: so an operator frees the number
// of an instance that is gone. Errors: [ErrNotFound], [ErrClock], [store.ErrForeign] and
// the store's. If another instance has the number by now, that is not an error. A concurrent
// Distribute for the same instance may happen before or after: the protocol cannot distinguish
// two processes of the same name.
func (r *Registrar) Revert(ctx context.Context, of Instance) error {
	if err := check(of, Forever); err != nil {
		return err
	}
	var released store.Revision // of the machine as this call returned it; a later revision is a new assignment
	return r.try(ctx, "revert instance", of, func() error {
		now, err := r.now(ctx)
		if err != nil {
			return err
		}
		b, id, m, err := r.lookUp(ctx, of)
		if released != 0 && (errors.Is(err, ErrNotFound) || err == nil && m.revision != released) {
			return nil
		}
		if err != nil {
			return err
		}
		// Write even if the number is already free: that may be an earlier try's write, which
		// the store has not confirmed.
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
			r.cfg.Log.Debug("machine number returned", "namespace", of.Namespace, "instance", of.Name, "machine", id)
		}
		// From here on another instance may have the number. If this write fails for good, the
		// bucket lists a number that is free or another's; the next call handles that.
		_, err = r.setBucket(ctx, of.Namespace, of.Name, b.without(of.Name))
		return err
	})
}
