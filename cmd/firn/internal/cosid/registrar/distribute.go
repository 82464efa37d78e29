package registrar

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// maxCrowd is how many instances a place may have before those that are gone are
// dropped from it.
const maxCrowd = 16

// A request is one call of Distribute as it stands.
type request struct {
	Instance
	guard int64
	total int // numbers there are by the bits asked for
	limit int // and at most here
	now   int64
	read  time.Duration // when now was, on the monotonic clock
	tries int

	claimed bool // this call has tried to make the instance the holder of the number below
	claim   int
	held    machine // as written; revision 0 if that failed, or its answer was lost
}

func check(of Instance, guard int64) error {
	if err := store.CheckName("machine namespace", of.Namespace); err != nil {
		return err
	}
	if of.Name == "" {
		return firn.NewSyntaxError("instance", of.Name, "it is empty")
	}
	if guard < 1 {
		return firn.NewRangeError("safe-guard time in milliseconds", guard, 1, math.MaxInt64, "")
	}
	return nil
}

// Distribute returns the machine number of an instance, below 2^bits, and gives it one
// if it has none: one that was given back, else the least that was never used, else that
// of the instance that has been silent longest, for at least its own safe-guard time and
// the asker's. Guard is in milliseconds, at least 1. A stable asker, or one with
// [Forever], takes nobody's number and loses its own to nobody.
//
// It may be called again with the same result, also where an answer was lost. Errors:
// *[OverflowError], *[ClockError], [store.ErrForeign], *[firn.RangeError], *[firn.SyntaxError]
// and the store's.
func (r *Registrar) Distribute(ctx context.Context, of Instance, bits int, guard int64) (State, error) {
	if err := check(of, guard); err != nil {
		return State{}, err
	}
	if bits < 1 || bits > MaxBits {
		return State{}, firn.NewRangeError("machine bits", int64(bits), 1, MaxBits, "")
	}
	q := &request{Instance: of, guard: guard, total: 1 << bits}
	q.limit = min(q.total, r.cfg.MaxMachines)
	var state State
	err := r.try(ctx, "find a machine number for instance", of, func() (err error) {
		q.read = r.cfg.Time.Monotonic()
		if q.now, err = r.now(ctx); err != nil {
			return err
		}
		state, err = r.distribute(ctx, q)
		q.tries++
		return err
	})
	if err != nil {
		return State{}, err
	}
	return state, nil
}

func (r *Registrar) distribute(ctx context.Context, q *request) (State, error) {
	p, err := r.place(ctx, q.Namespace, q.Name)
	if err != nil {
		return State{}, err
	}
	id, known := p.Machines[q.Name]
	switch {
	case q.claimed && !known:
		// The place was cleared, by who saw it before the machine was held.
		return r.take(ctx, q, p, q.claim)
	case q.claimed && id != q.claim:
		r.giveBack(ctx, q)
	}
	if known {
		m, err := r.machine(ctx, q.Namespace, id)
		switch {
		case err != nil:
			return State{}, err
		case m.Held && m.Instance == q.Name && id >= q.limit:
			return State{}, &OverflowError{Namespace: q.Namespace, Instance: q.Name, Total: q.total, Own: id}
		case id < q.limit && (!m.Held || m.Instance == q.Name):
			return r.hold(ctx, q, p, id, m)
		}
		// It was lost: another has it, or the place was never followed up. The instance is
		// moved away from it only once the store has confirmed that.
		m.Instance = cmp.Or(m.Instance, q.Name) // of one that was never used
		if _, err := r.setMachine(ctx, q.Namespace, id, m); err != nil {
			return State{}, err
		}
	}
	v := r.view(q.Namespace)
	if err := wait(ctx, v.turns); err != nil {
		return State{}, err
	}
	defer func() { v.turns <- struct{}{} }()
	id, err = r.find(ctx, q, v)
	if err != nil {
		return State{}, err
	}
	defer r.picked(v, id)
	return r.take(ctx, q, p, id)
}

// find returns a number that was free when it was read. It is busy until the caller has
// taken it, or has not.
func (r *Registrar) find(ctx context.Context, q *request, v *view) (int, error) {
	since := q.read - viewLasts
	for {
		if err := r.load(ctx, q.Namespace, v, since); err != nil {
			return 0, err
		}
		for {
			id, ok, pending := r.pick(v, q)
			if !ok && since == q.read && pending {
				return 0, fmt.Errorf("others are about to have the last numbers: %w", store.ErrConflict)
			}
			if !ok && since == q.read {
				found, err := r.reclaim(ctx, q, v)
				if err != nil {
					return 0, err
				}
				if found {
					continue
				}
				return 0, &OverflowError{Namespace: q.Namespace, Instance: q.Name, Total: q.limit, Own: -1}
			}
			if !ok {
				break // perhaps there is one by now
			}
			m, err := r.machine(ctx, q.Namespace, id)
			if err == nil && m.free(q) {
				return id, nil
			}
			if err == nil {
				r.note(q.Namespace, id, m) // it is no candidate any more
			}
			r.picked(v, id)
			if err != nil {
				return 0, err
			}
		}
		since = q.read
	}
}

// take writes a number into the instance's place, holds it, and confirms it.
func (r *Registrar) take(ctx context.Context, q *request, p place, id int) (State, error) {
	next := p.with(q.Name, id)
	if len(next.Machines) > maxCrowd {
		var err error
		if next, err = r.thin(ctx, q, next); err != nil {
			return State{}, err
		}
	}
	p, err := r.setPlace(ctx, q.Namespace, q.Name, next)
	if err != nil {
		return State{}, err
	}
	// Read after the place was written: what is held from here on is seen by whoever
	// reads the place later.
	m, err := r.machine(ctx, q.Namespace, id)
	if err != nil {
		return State{}, err
	}
	if !m.free(q) {
		r.note(q.Namespace, id, m)
		return State{}, fmt.Errorf("machine number %d was taken meanwhile: %w", id, store.ErrConflict)
	}
	return r.hold(ctx, q, p, id, m)
}

// hold makes the instance the holder of a number that is free, as m says, and to which
// its place points, and confirms that.
func (r *Registrar) hold(ctx context.Context, q *request, p place, id int, m machine) (State, error) {
	before := m
	m.Instance, m.Held, m.Stable, m.Stamp = q.Name, true, q.Stable, max(m.Stamp, q.now)
	m.setGuard(q.guard)
	q.claimed, q.claim, q.held = true, id, machine{}
	m, err := r.setMachine(ctx, q.Namespace, id, m)
	if err != nil {
		return State{}, err
	}
	r.note(q.Namespace, id, m)
	q.held = m
	// Whoever moves the instance's place now conflicts with this write, or this write
	// with theirs.
	if _, err := r.setPlace(ctx, q.Namespace, q.Name, p.with(q.Name, id)); err != nil {
		return State{}, err
	}
	if waited := (r.cfg.Time.Monotonic() - q.read).Milliseconds(); !q.Stable && waited > q.guard/2 {
		// The stamp is so old that another may have the number at any moment.
		return State{}, fmt.Errorf("%w: it took %d ms to give number %d, more than half the safe-guard time", store.ErrUnavailable, waited, id)
	}
	r.tell(q, id, before)
	return State{Machine: id, Stamp: m.Stamp}, nil
}

func (r *Registrar) tell(q *request, id int, before machine) {
	log := r.cfg.Log.With("namespace", q.Namespace, "instance", q.Name, "machine", id)
	switch {
	case before.Held && before.Instance == q.Name:
		log.Debug("machine number given again")
	case before.Held:
		log.Warn("machine number taken from a silent instance", "from", before.Instance, "silent for ms", q.now-before.Stamp)
	default:
		log.Info("machine number given")
	}
}

// reclaim frees numbers that are held by a name whose place says another: what a server
// left that ended at an unlucky moment. It is the last resort, and looks at some at a time.
//
// It takes none from an instance. Whoever is given a number writes its place before it reads
// the machine, and again after it has written it: if the place, read after the machine, says
// another number, and is written once more so that the store confirms that, then nobody was
// given this one, and who is about to be will find it changed, or makes this write find that.
func (r *Registrar) reclaim(ctx context.Context, q *request, v *view) (found bool, err error) {
	for _, id := range r.unyielding(v, q) {
		m, err := r.machine(ctx, q.Namespace, id)
		if err != nil {
			return found, err
		}
		if !m.Held {
			r.note(q.Namespace, id, m)
			found = true
			continue
		}
		p, err := r.place(ctx, q.Namespace, m.Instance)
		if err != nil {
			return found, err
		}
		if has, ok := p.Machines[m.Instance]; ok && has == id {
			continue
		}
		if _, err = r.setPlace(ctx, q.Namespace, m.Instance, p); err != nil {
			return found, err
		}
		m.Held, m.Stable = false, false
		if m, err = r.setMachine(ctx, q.Namespace, id, m); err != nil {
			return found, err
		}
		r.note(q.Namespace, id, m)
		found = true
	}
	return found, nil
}

// giveBack frees the number that this call held while another gave the instance a
// different one; only as this call wrote it, since that other may hold it again by now.
// Should it fail, the number is free after the safe-guard time, that of a stable
// instance when numbers run out: see reclaim.
func (r *Registrar) giveBack(ctx context.Context, q *request) {
	m := q.held
	q.claimed = false
	if m.revision == 0 {
		return
	}
	m.Held, m.Stable = false, false
	m, err := r.setMachine(ctx, q.Namespace, q.claim, m)
	if err != nil {
		r.cfg.Log.Warn("a machine number that an instance held twice was not given back",
			"namespace", q.Namespace, "instance", q.Name, "machine", q.claim, "error", err)
		return
	}
	r.note(q.Namespace, q.claim, m)
}

// thin drops those instances from a place that do not hold the number it says, once the
// store has confirmed that they do not: a place that no longer says a number frees it.
func (r *Registrar) thin(ctx context.Context, q *request, p place) (place, error) {
	thin := place{Machines: map[string]int{}, revision: p.revision}
	for instance, id := range p.Machines {
		if instance != q.Name {
			m, err := r.machine(ctx, q.Namespace, id)
			if err != nil {
				return place{}, err
			}
			if !m.Held || m.Instance != instance {
				m.Instance = cmp.Or(m.Instance, instance) // of one that was never used
				if _, err := r.setMachine(ctx, q.Namespace, id, m); err != nil {
					return place{}, err
				}
				continue
			}
		}
		thin.Machines[instance] = id
	}
	return thin, nil
}
