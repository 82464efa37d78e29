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
	turn     chan struct{} // holds one token: who has it looks for a number
	machines map[int]machine
	loaded   time.Duration // monotonic
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
)

// turn waits until nobody else on this server looks for a number in the namespace:
// they would all look at the same. The caller returns it.
func (r *Registrar) turn(ctx context.Context, namespace string) (*view, error) {
	r.mu.Lock()
	v := r.views[namespace]
	if v == nil {
		if len(r.views) >= maxViews {
			for other := range r.views { // any: it is loaded again when it is needed
				delete(r.views, other)
				break
			}
		}
		v = &view{turn: make(chan struct{}, 1)}
		v.turn <- struct{}{}
		r.views[namespace] = v
	}
	r.mu.Unlock()
	select {
	case <-v.turn:
		return v, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// load lists the machines of a namespace.
func (r *Registrar) load(ctx context.Context, namespace string, v *view) error {
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
	v.machines, v.loaded, v.valid = machines, r.cfg.Time.Monotonic(), true
	return nil
}

// note takes in what was seen of a machine.
func (r *Registrar) note(namespace string, id int, m machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.views[namespace]; v != nil && v.valid && m.revision != 0 {
		v.machines[id] = m
	}
}

// current reports whether a view can be used.
func (r *Registrar) current(v *view) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.valid && r.cfg.Time.Monotonic()-v.loaded < viewLasts
}

// candidates returns the numbers to look at, best first, all of one sort: those given back;
// else never used; else those whose holders have been silent for long enough, the
// longest silent first.
func (r *Registrar) candidates(v *view, q *request) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var back, silent []int
	for id, m := range v.machines {
		switch {
		case id >= q.limit:
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
		if _, used := v.machines[id]; !used {
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

// free reports whether a number may be the asker's.
func (m machine) free(q *request) bool {
	switch {
	case m.revision == 0, !m.Held, m.Instance == q.Name:
		return true
	case m.Stable, m.Guard == 0:
		return false // nobody else's, however long it has been silent
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
