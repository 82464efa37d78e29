package registrar

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
)

// A view is a server's cached list of the machines of a namespace. It only suggests free
// numbers: the register of a number is read before the number is taken, and all are listed
// again before a call fails with [ErrOverflow].
type view struct {
	searches *semaphore.Weighted // limits concurrent searches for a number
	loading  *semaphore.Weighted // of weight 1: held while the machines are listed

	// Guarded by the registrar's lock.
	machines map[int]machine // each with the short of its instance
	forget   *time.Timer     // gives the view up when it has not been loaded for viewLifetime
	busy     map[int]bool    // a call on this server is about to take the number
	loaded   time.Duration   // monotonic, when the listing began
	valid    bool
}

const (
	// viewLifetime is how long a view is used. Until then a number that was returned at
	// another server may be overlooked.
	viewLifetime = 10 * time.Second
	// maxViews bounds the views, one for each namespace.
	maxViews = 256
	// maxListed bounds the unused or reserved numbers that one search considers.
	maxListed = 64
	// parallel is how many numbers of a namespace one server assigns concurrently. All servers
	// try the same numbers first, so more would mostly conflict with each other.
	parallel = 8
)

// view returns the view of a namespace.
func (r *Registrar) view(namespace string) *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.views[namespace]
	if v == nil {
		if len(r.views) >= maxViews {
			for other := range r.views { // drop any of them; it is loaded again if needed
				delete(r.views, other)
				break
			}
		}
		v = &view{searches: semaphore.NewWeighted(parallel), loading: semaphore.NewWeighted(1), busy: map[int]bool{}}
		r.views[namespace] = v
	}
	return v
}

// load lists the machines of a namespace, unless the last listing began at since or later.
func (r *Registrar) load(ctx context.Context, namespace string, v *view, since time.Duration) error {
	if err := v.loading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer v.loading.Release(1)
	if r.loadedSince(v, since) {
		return nil
	}
	began := r.cfg.Time.Monotonic()
	list, err := r.cfg.Store.List(ctx, machinePrefix(namespace))
	if err != nil {
		return err
	}
	machines := make(map[int]machine, len(list))
	for _, e := range list {
		id, err := machineOf(namespace, e.Key)
		if err != nil {
			return err
		}
		m, err := readMachine(e)
		if err != nil {
			return err
		}
		machines[id] = m.compact()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.forget == nil {
		v.forget = time.AfterFunc(viewLifetime, func() { r.forget(namespace, v) })
	} else {
		v.forget.Reset(viewLifetime)
	}
	v.machines, v.loaded, v.valid = machines, began, true
	return nil
}

// forget gives a view up. Calls that use it go on with it.
func (r *Registrar) forget(namespace string, v *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.views[namespace] == v {
		delete(r.views, namespace)
	}
}

// compact returns what a view keeps: names of instances have up to 255 bytes, and a view may have 65,536 machines.
func (m machine) compact() machine {
	m.Instance = short(m.Instance)
	return m
}

// short stands for the name of an instance where a mistake costs one more read of the store.
func short(instance string) string {
	sum := sha256.Sum256([]byte(instance))
	return string(sum[:8])
}

// loadedSince reports whether the view was listed at since or later.
func (r *Registrar) loadedSince(v *view, since time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.valid && v.loaded >= since
}

// note updates the view with a machine that was read or written.
func (r *Registrar) note(namespace string, id int, m machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.views[namespace].note(id, m)
}

// noteIn is note of a view that may have been given up.
func (r *Registrar) noteIn(v *view, id int, m machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.note(id, m)
}

func (v *view) note(id int, m machine) {
	if v != nil && v.valid && m.revision != 0 {
		v.machines[id] = m.compact()
	}
}

// pick chooses a candidate and marks it busy. Pending says that there is no candidate now, but
// other calls are about to take numbers that they may leave.
func (r *Registrar) pick(v *view, q *request) (id int, ok, pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := v.candidates(q)
	if len(of) == 0 {
		return 0, false, len(v.busy) > 0
	}
	// Servers that always pick the best candidate conflict again and again; so after a
	// conflict they spread out.
	at := 0
	if q.tries > 0 {
		at = int(r.cfg.Random() % uint64(min(len(of), 4<<min(q.tries, 8))))
	}
	v.busy[of[at]] = true
	return of[at], true, false
}

// unpick marks a number as no longer busy.
func (r *Registrar) unpick(v *view, id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(v.busy, id)
}

// candidates returns numbers that may be free, best first: returned numbers, else unused ones,
// else those of silent holders, longest silent first. The caller holds the registrar's lock.
func (v *view) candidates(q *request) []int {
	var returned, silent []int
	own := short(q.Name)
	for id, m := range v.machines {
		switch {
		case id >= q.limit || v.busy[id]:
		case !m.Held || m.Instance == own:
			returned = append(returned, id)
		case m.free(q):
			silent = append(silent, id)
		}
	}
	if len(returned) > 0 {
		slices.Sort(returned)
		return returned
	}
	var unused []int
	for id := 0; id < q.limit && len(unused) < maxListed; id++ {
		if _, used := v.machines[id]; !used && !v.busy[id] {
			unused = append(unused, id)
		}
	}
	if len(unused) > 0 {
		return unused
	}
	slices.SortFunc(silent, func(a, b int) int {
		return cmp.Or(cmp.Compare(v.machines[a].Stamp, v.machines[b].Stamp), cmp.Compare(a, b))
	})
	return silent
}

// reserved returns some of the numbers that their holders keep however long they are silent.
func (r *Registrar) reserved(v *view, q *request) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var some []int
	for id, m := range v.machines { // in random order, so that later calls return others
		if id < q.limit && m.Held && (m.Stable || m.Guard == 0) {
			if some = append(some, id); len(some) == maxListed {
				break
			}
		}
	}
	slices.Sort(some)
	return some
}

// free reports whether the instance of q may take the number.
func (m machine) free(q *request) bool {
	switch {
	case m.revision == 0, !m.Held, m.Instance == q.Name:
		return true
	case m.Stable, m.Guard == 0:
		return false // reserved for its instance, however long that has been silent
	case q.Stable, q.guard == Forever:
		return false // as in CosId: an instance that never loses its number never takes another's
	}
	// The longer of the two safe-guard times counts: the holder's says how often it calls, and
	// the caller's how sure it wants to be.
	return m.Stamp <= q.now-max(m.Guard, q.guard)
}

// setGuard sets the holder's safe-guard time; Forever is stored as 0.
func (m *machine) setGuard(guard int64) {
	m.Guard = guard
	if guard == Forever {
		m.Guard = 0
	}
}
