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

// maxPerBucket is how many instances a bucket may list before it is pruned.
const maxPerBucket = 16

// A request is the state of one call of Distribute.
type request struct {
	Instance
	guard int64
	total int // 2^bits
	limit int // total, at most Config.MaxMachines
	now   int64
	read  time.Duration // when now was read, on the monotonic clock
	tries int

	claimed bool // this call has tried to make the instance the holder of claim
	claim   int
	undo    func()  // of Instance.New; not called once a machine may have been written
	wrote   bool    // a machine may have been written
	held    machine // as written; revision 0 if the write failed or its answer was lost
}

// admit asks for a number that was never used, before anything is written.
func (q *request) admit(m machine) error {
	if m.revision != 0 || q.New == nil || q.undo != nil {
		return nil
	}
	undo, err := q.New()
	if err != nil {
		return &refusedError{err}
	}
	q.undo = undo
	return nil
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

// Distribute returns the machine number of an instance, below 2^bits. An instance without
// a number is assigned one: a returned number, else the lowest unused one, else the number of
// the instance that has been silent longest, if that is longer than its own safe-guard time
// and the caller's. Guard is in milliseconds, at least 1. A stable instance, or one with
// [Forever], never takes another's number and never loses its own.
//
// It is idempotent: call it again if an answer was lost. Errors: [ErrOverflow],
// [ErrClock], [store.ErrForeign], *[firn.RangeError], *[firn.SyntaxError] and the store's.
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
	err := r.try(ctx, "assign a machine number to instance", of, func() (err error) {
		q.read = r.cfg.Time.Monotonic()
		if q.now, err = r.now(ctx); err != nil {
			return err
		}
		state, err = r.distribute(ctx, q)
		q.tries++
		return err
	})
	if err != nil {
		if q.undo != nil && !q.wrote {
			q.undo()
		}
		return State{}, err
	}
	return state, nil
}

func (r *Registrar) distribute(ctx context.Context, q *request) (State, error) {
	b, err := r.bucket(ctx, q.Namespace, q.Name)
	if err != nil {
		return State{}, err
	}
	id, known := b.Machines[q.Name]
	switch {
	case q.claimed && !known:
		// Another call cleared the bucket's entry: it had read the machine before it was held.
		return r.take(ctx, q, b, q.claim)
	case q.claimed && id != q.claim:
		r.returnClaim(ctx, q)
	}
	if known {
		m, err := r.machine(ctx, q.Namespace, id)
		switch {
		case err != nil:
			return State{}, err
		case m.Held && m.Instance == q.Name && id >= q.limit:
			return State{}, refuse(ErrOverflow, "instance %q of %q has machine number %d, which is not below %d: ask for more machine bits, or return the number first",
				q.Name, q.Namespace, id, q.total)
		case id < q.limit && (!m.Held || m.Instance == q.Name):
			return r.hold(ctx, q, b, id, m)
		}
		// The number is lost: another instance has it, or the call that wrote the bucket ended
		// there. The store must confirm this before the instance gets another number.
		m.Instance = cmp.Or(m.Instance, q.Name) // a number never used has no instance
		if _, err := r.setMachine(ctx, q.Namespace, id, m); err != nil {
			return State{}, err
		}
	}
	v := r.view(q.Namespace)
	if err := v.searches.Acquire(ctx, 1); err != nil {
		return State{}, err
	}
	defer v.searches.Release(1)
	id, err = r.find(ctx, q, v)
	if err != nil {
		return State{}, err
	}
	defer r.unpick(v, id)
	return r.take(ctx, q, b, id)
}

// find returns a number that was free when it was read. The caller must unpick it.
func (r *Registrar) find(ctx context.Context, q *request, v *view) (int, error) {
	since := q.read - viewLifetime
	for {
		if err := r.load(ctx, q.Namespace, v, since); err != nil {
			return 0, err
		}
		for {
			id, ok, pending := r.pick(v, q)
			if !ok && since == q.read && pending {
				return 0, fmt.Errorf("other calls are taking the last numbers: %w", store.ErrConflict)
			}
			if !ok && since == q.read {
				found, err := r.reclaim(ctx, q, v)
				if err != nil {
					return 0, err
				}
				if found {
					continue
				}
				return 0, refuse(ErrOverflow, "no machine number is left in %q for instance %q: all %d are assigned; use more machine bits, or return the numbers of instances that are gone",
					q.Namespace, q.Name, q.limit)
			}
			if !ok {
				break // a number may be free by now: list again
			}
			m, err := r.machine(ctx, q.Namespace, id)
			if err == nil && m.free(q) {
				if err = q.admit(m); err == nil {
					return id, nil
				}
			} else if err == nil {
				r.noteIn(v, id, m) // no longer a candidate
			}
			r.unpick(v, id)
			if err != nil {
				return 0, err
			}
		}
		since = q.read
	}
}

// take writes a number into the instance's bucket, holds it, and confirms it.
func (r *Registrar) take(ctx context.Context, q *request, b bucket, id int) (State, error) {
	next := b.with(q.Name, id)
	if len(next.Machines) > maxPerBucket {
		var err error
		if next, err = r.prune(ctx, q, next); err != nil {
			return State{}, err
		}
	}
	b, err := r.setBucket(ctx, q.Namespace, q.Name, next)
	if err != nil {
		return State{}, err
	}
	// Read the machine after the bucket was written: a call that reads the bucket from now on
	// sees which number this instance is about to hold.
	m, err := r.machine(ctx, q.Namespace, id)
	if err != nil {
		return State{}, err
	}
	if !m.free(q) {
		r.note(q.Namespace, id, m)
		return State{}, fmt.Errorf("machine number %d was taken meanwhile: %w", id, store.ErrConflict)
	}
	return r.hold(ctx, q, b, id, m)
}

// hold makes the instance the holder of a number that m shows to be free and that its bucket
// already lists, and confirms both.
func (r *Registrar) hold(ctx context.Context, q *request, b bucket, id int, m machine) (State, error) {
	before := m
	m.Instance, m.Held, m.Stable, m.Stamp = q.Name, true, q.Stable, max(m.Stamp, q.now)
	m.setGuard(q.guard)
	q.claimed, q.claim, q.held = true, id, machine{}
	m, err := r.setMachine(ctx, q.Namespace, id, m)
	q.wrote = q.wrote || !store.Unapplied(err)
	if err != nil {
		return State{}, err
	}
	r.note(q.Namespace, id, m)
	q.held = m
	// A concurrent call that changes the instance's number conflicts with this write.
	if _, err := r.setBucket(ctx, q.Namespace, q.Name, b.with(q.Name, id)); err != nil {
		return State{}, err
	}
	if waited := (r.cfg.Time.Monotonic() - q.read).Milliseconds(); !q.Stable && waited > q.guard/2 {
		// The stamp is so old that another instance may take the number soon.
		return State{}, fmt.Errorf("%w: it took %d ms to assign number %d, more than half the safe-guard time", store.ErrUnavailable, waited, id)
	}
	r.log(q, id, before)
	return State{Machine: id, Stamp: m.Stamp}, nil
}

func (r *Registrar) log(q *request, id int, before machine) {
	fields := []any{"namespace", q.Namespace, "instance", q.Name, "machine", id}
	switch {
	case before.Held && before.Instance == q.Name:
		r.cfg.Log.Debug("machine number assigned again", fields...)
	case before.Held:
		r.warn("machine number taken from a silent instance", append(fields, "from", before.Instance, "silent for ms", q.now-before.Stamp)...)
	default: // at debug level too: a client makes thousands of these a second
		r.cfg.Log.Debug("machine number assigned", fields...)
	}
}

// reclaim frees reserved numbers whose holder's bucket lists another number, or no number for
// it: a server that ended between two writes leaves such a number. It is the last resort, and
// checks only some numbers in a call.
//
// It takes no number that was assigned. A call that assigns a number writes the bucket before it
// reads the machine, and again after it has written the machine. So if the bucket, read after
// the machine, does not list this number, and the store confirms that by another write of the
// bucket, then no call has assigned the number. A call that is about to either finds the machine
// changed, or makes the write here conflict.
func (r *Registrar) reclaim(ctx context.Context, q *request, v *view) (found bool, err error) {
	for _, id := range r.reserved(v, q) {
		m, err := r.machine(ctx, q.Namespace, id)
		if err != nil {
			return found, err
		}
		if !m.Held {
			r.noteIn(v, id, m)
			found = true
			continue
		}
		b, err := r.bucket(ctx, q.Namespace, m.Instance)
		if err != nil {
			return found, err
		}
		if has, ok := b.Machines[m.Instance]; ok && has == id {
			continue
		}
		if _, err = r.setBucket(ctx, q.Namespace, m.Instance, b); err != nil {
			return found, err
		}
		m.Held, m.Stable = false, false
		if m, err = r.setMachine(ctx, q.Namespace, id, m); err != nil {
			return found, err
		}
		r.noteIn(v, id, m)
		found = true
	}
	return found, nil
}

// returnClaim frees the number that this call held while another call assigned the instance a
// different one. It writes only over this call's own write, because the instance may hold the
// number again by now. If it fails, the number becomes free after the safe-guard time; the
// number of a stable instance becomes free when numbers run out, see reclaim.
func (r *Registrar) returnClaim(ctx context.Context, q *request) {
	m := q.held
	q.claimed = false
	if m.revision == 0 {
		return
	}
	m.Held, m.Stable = false, false
	m, err := r.setMachine(ctx, q.Namespace, q.claim, m)
	if err != nil {
		r.warn("the second machine number of an instance could not be returned",
			"namespace", q.Namespace, "instance", q.Name, "machine", q.claim, "error", err)
		return
	}
	r.note(q.Namespace, q.claim, m)
}

// prune drops the instances from a bucket that no longer hold the number listed for them. The
// store must confirm that first: dropping an entry frees its number, see reclaim.
func (r *Registrar) prune(ctx context.Context, q *request, b bucket) (bucket, error) {
	pruned := bucket{Machines: map[string]int{}, revision: b.revision}
	for instance, id := range b.Machines {
		if instance != q.Name {
			m, err := r.machine(ctx, q.Namespace, id)
			if err != nil {
				return bucket{}, err
			}
			if !m.Held || m.Instance != instance {
				m.Instance = cmp.Or(m.Instance, instance) // a number never used has no instance
				if _, err := r.setMachine(ctx, q.Namespace, id, m); err != nil {
					return bucket{}, err
				}
				continue
			}
		}
		pruned.Machines[instance] = id
	}
	return pruned, nil
}
