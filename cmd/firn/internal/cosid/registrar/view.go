package registrar

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A view is what this server last saw of the machines of a namespace. It only says
// where to look for a free number: before one is taken its register is read,
// and none is said to be left before all have been listed anew.
type view struct {
	turns   chan struct{} // tokens: the holder of one looks for a number
	loading chan struct{} // one token: its holder lists

	// Guarded by the registrar's lock.
	machines map[int]machine
	busy     map[int]bool  // someone on this server is about to take it
	loaded   time.Duration // monotonic, when the listing began
	valid    bool
}

const (
	// viewLasts is for how long a view is used. Until then a number that was given
	// back at another server may be passed over.
	viewLasts = 10 * time.Second
	// maxViews bounds how many namespaces have one.
	maxViews = 256
	// near is how many never-used numbers are looked at at once.
	near = 64
	// parallel is how many numbers of a namespace one server gives at once. All servers
	// reach for the same numbers first, so more would mostly get into each other's way.
	parallel = 8
)

// wait takes a token, which the caller gives back.
func wait(ctx context.Context, tokens chan struct{}) error {
	select {
	case <-tokens:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// view returns the view of a namespace.
func (r *Registrar) view(namespace string) *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.views[namespace]
	if v == nil {
		if len(r.views) >= maxViews {
			for other := range r.views { // any: it is loaded again when it is needed
				delete(r.views, other)
				break
			}
		}
		v = &view{turns: make(chan struct{}, parallel), loading: make(chan struct{}, 1), busy: map[int]bool{}}
		for range parallel {
			v.turns <- struct{}{}
		}
		v.loading <- struct{}{}
		r.views[namespace] = v
	}
	return v
}

// load lists the machines of a namespace, unless that was begun at since or later.
func (r *Registrar) load(ctx context.Context, namespace string, v *view, since time.Duration) error {
	if err := wait(ctx, v.loading); err != nil {
		return err
	}
	defer func() { v.loading <- struct{}{} }()
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
		if machines[id], err = readMachine(e); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	v.machines, v.loaded, v.valid = machines, began, true
	return nil
}

// loadedSince reports whether the view is of that time or later.
func (r *Registrar) loadedSince(v *view, since time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.valid && v.loaded >= since
}

// note takes in what was seen of a machine.
func (r *Registrar) note(namespace string, id int, m machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.views[namespace]; v != nil && v.valid && m.revision != 0 {
		v.machines[id] = m
	}
}

// pick chooses the number to look at, if there is one, which is then busy: one that was
// given back; else one never used; else that of the longest silent holder. Pending says
// that there is none but those that others are about to take.
func (r *Registrar) pick(v *view, q *request) (id int, ok, pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := v.candidates(q)
	if len(of) == 0 {
		return 0, false, len(v.busy) > 0
	}
	// Servers that look at once at the best take turns in losing it; so after a conflict
	// they spread.
	at := 0
	if q.tries > 0 {
		at = int(r.cfg.Random() % uint64(min(len(of), 4<<min(q.tries, 8))))
	}
	v.busy[of[at]] = true
	return of[at], true, false
}

// picked ends that a number is busy.
func (r *Registrar) picked(v *view, id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(v.busy, id)
}

// candidates returns the numbers that may be free, all of the best sort there is, best first.
// The registrar's lock is held.
func (v *view) candidates(q *request) []int {
	var back, silent []int
	for id, m := range v.machines {
		switch {
		case id >= q.limit || v.busy[id]:
		case !m.Held || m.Instance == q.Name:
			back = append(back, id)
		case m.free(q):
			silent = append(silent, id)
		}
	}
	if len(back) > 0 {
		slices.Sort(back)
		return back
	}
	var never []int
	for id := 0; id < q.limit && len(never) < near; id++ {
		if _, used := v.machines[id]; !used && !v.busy[id] {
			never = append(never, id)
		}
	}
	if len(never) > 0 {
		return never
	}
	slices.SortFunc(silent, func(a, b int) int {
		return cmp.Or(cmp.Compare(v.machines[a].Stamp, v.machines[b].Stamp), cmp.Compare(a, b))
	})
	return silent
}

// unyielding returns some of the numbers that no silence makes free.
func (r *Registrar) unyielding(v *view, q *request) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var some []int
	for id, m := range v.machines { // in no order, so that each has its turn
		if id < q.limit && m.Held && (m.Stable || m.Guard == 0) {
			if some = append(some, id); len(some) == near {
				break
			}
		}
	}
	slices.Sort(some)
	return some
}

// free reports whether a number may be the asker's.
func (m machine) free(q *request) bool {
	switch {
	case m.revision == 0, !m.Held, m.Instance == q.Name:
		return true
	case m.Stable, m.Guard == 0:
		return false // reserved for its instance, however long that has been silent
	case q.Stable, q.guard == Forever:
		return false // as in CosId, those who never give way take nobody's place either
	}
	// The longer of the two safe-guard times: the holder's says how often it is heard
	// of, and the asker's how sure it wants to be.
	return m.Stamp <= q.now-max(m.Guard, q.guard)
}

// setGuard sets the holder's safe-guard time, in which for ever is none.
func (m *machine) setGuard(guard int64) {
	m.Guard = guard
	if guard == Forever {
		m.Guard = 0
	}
}
