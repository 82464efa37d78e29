package sim

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/firn-id/firn/store"
)

// token matches the name of a writer, which is random and independent of the seed.
var token = regexp.MustCompile(`"(owner|by|writer)":"[^"]*",`)

// A written value is printed without it, and only with a trace.
type written []byte

func (v written) String() string { return string(token.ReplaceAll(v, nil)) }

// A client is a machine's view of the store: the [store.Store] of its process.
type client struct{ m *machine }

// client returns the store of a process.
func (m *machine) client() store.Store { return client{m} }

// Traits implements [store.Store], as the plan demands.
func (c client) Traits() (of store.Traits) {
	of.Embedded = c.m.w.plan.embedded
	if c.m.w.plan.clock {
		of.Clock = c
	}
	return of
}

// Now implements [store.Clock].
func (c client) Now(ctx context.Context) (time.Time, error) {
	r := request{m: c.m, op: "clock", key: "the clock", read: true}
	return ask(ctx, r, func(s *side, _ []store.Entry) (time.Time, error) {
		return noon.Add(time.Duration(c.m.w.now + s.clock)), nil
	})
}

// Get implements [store.Store].
func (c client) Get(ctx context.Context, key string) (store.Entry, error) {
	r := request{m: c.m, op: "get", key: key, read: true}
	return ask(ctx, r, func(s *side, entries []store.Entry) (store.Entry, error) { return s.get(entries, key) })
}

// List implements [store.Store]. It keeps no more than the contract: each register is as it was at a
// moment of its own.
func (c client) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	r := request{m: c.m, op: "list", key: prefix, read: true}
	began := c.m.w.now
	return ask(ctx, r, func(s *side, entries []store.Entry) ([]store.Entry, error) {
		return list(s.torn(entries, began), prefix), nil
	})
}

// CompareAndSwap implements [store.Store].
func (c client) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	w := c.m.w
	if w.faults.strikes(refused) {
		w.trace.say(c.m, "write %s: refused", key)
		return store.Entry{}, fmt.Errorf("the simulated store: %w", store.ErrRefused)
	}
	r := request{m: c.m, op: "write", key: key, value: value}
	return ask(ctx, r, func(s *side, _ []store.Entry) (store.Entry, error) {
		if w.store.ambush && old == 0 {
			if _, there := find(s.entries, key); there {
				w.store.ambush = false
				w.store.wipe(false)
			}
		}
		e, err := s.swap(key, old, value)
		w.trace.say(c.m, "write %s over revision %d at %s: revision %d, %v: %s", key, old, s.name, e.Revision, err, written(value))
		return e, err
	})
}

// Close implements [store.Store].
func (c client) Close() error { return nil }

// A request is a call of the store in flight.
type request struct {
	m     *machine
	op    string // get, list, write, clock
	key   string
	value []byte
	read  bool

	fate  fate // the effect of aimed faults on it
	again bool // it arrives a second time
}

// ask sends a request and waits for the answer: as long as the client has patience, or ctx lasts. The
// request takes effect when it arrives, perhaps long after the caller has stopped waiting; a write is
// answered when it is confirmed.
func ask[T any](ctx context.Context, r request, do func(s *side, entries []store.Entry) (T, error)) (T, error) {
	m := r.m
	w, t := m.w, m.w.running
	var (
		value    T
		err      error
		answered bool
	)
	if ctx.Err() != nil {
		return value, store.ContextError(ctx)
	}
	turn := t.turn + 1
	deliver := func(v T, e error) {
		if w.faults.strikes(lostAnswer) || r.fate.struck[lostAnswer] {
			w.trace.say(m, "the answer for %s is lost", r.key)
			return
		}
		way := w.travel()
		if r.fate.struck[slow] {
			way += w.latencies.Int64N(int64(w.plan.patience))
		}
		if r.op == "clock" {
			way += max(m.leg, 0)
		}
		w.after(way, func() {
			if m.cut > w.now || t.turn != turn || t.ended {
				return
			}
			value, err, answered = v, e, true
			t.wake()
		})
	}
	if w.faults.strikes(lostRequest) || w.faults.strikes(hang) && w.mayHang(m) {
		w.trace.say(m, "the request for %s is lost", r.key)
	} else {
		way := w.travel()
		if r.op == "clock" {
			way += max(-m.leg, 0)
		}
		w.after(way, func() { arrive(&r, do, deliver) })
	}
	t.at(w.now + int64(w.plan.patience))
	t.wait(ctx, nil)
	switch {
	case answered && err != nil:
		return value, fmt.Errorf("the simulated store: %s: %w", r.key, err)
	case answered:
		return value, nil
	case ctx.Err() != nil:
		return value, store.ContextError(ctx)
	default:
		return value, fmt.Errorf("the simulated store: %s: %w: no answer within %v", r.key, store.ErrUnavailable, w.plan.patience)
	}
}

// arrive executes a request at its destination.
func arrive[T any](r *request, do func(s *side, entries []store.Entry) (T, error), deliver func(T, error)) {
	w, m := r.m.w, r.m
	s := w.store.reached(m)
	at := momentOf(s, r.op, r.key, r.value)
	r.fate.key = r.key
	w.faults.reach(m, at, true, &r.fate)
	s = w.store.reached(m) // a fault may have struck
	if w.store.down > w.now || m.cut > w.now || s.gone || r.fate.struck[hang] || r.fate.struck[lostRequest] {
		w.cover.reach(m, at, "lost")
		return // no answer
	}
	entries := s.entries
	if r.read && w.faults.strikes(stale) {
		ago := w.faults.duration(30 * time.Second)
		entries, _ = s.before(ago)
		w.trace.say(m, "reads %s as it was %v ago", r.key, time.Duration(ago))
	}
	v, err := do(s, entries)
	w.cover.reach(m, at, outcome(err))
	w.faults.reach(m, at, false, &r.fate)
	if !r.again && !r.read && (r.fate.struck[echo] || w.faults.strikes(echo)) {
		second := *r
		second.again = true
		w.trace.say(m, "the request for %s will come again", r.key)
		w.after(w.faults.duration(time.Minute), func() { arrive(&second, do, func(T, error) {}) })
	}
	if r.read || err != nil {
		deliver(v, err)
		return
	}
	s.confirm(func(lack error) {
		switch {
		case lack != nil:
			err = lack
		case r.fate.struck[unconfirmed] || w.faults.strikes(unconfirmed):
			err = errUnconfirmed
		case r.fate.struck[misreport] || w.faults.strikes(misreport):
			err = store.ErrConflict
		}
		if err != nil {
			w.trace.say(m, "the write of %s is answered with: %v", r.key, err)
			w.cover.reach(m, at, "unconfirmed")
		}
		deliver(v, err)
	})
}

// travel draws how long a message takes.
func (w *world) travel() int64 {
	if w.faults.strikes(slow) {
		return w.faults.duration(maxPause)
	}
	return int64(w.plan.latency/4) + seldom(w.latencies, w.plan.latency)
}

// betweenHangs is how long a process is spared after a request that hung, if it must reach the store
// within the grace.
const betweenHangs = 30 * time.Second

// mayHang reports whether a machine's request may stay unanswered for ever.
func (w *world) mayHang(m *machine) bool {
	if w.plan.regime == Reasserted && m.hung > 0 && w.now-m.hung < int64(betweenHangs) {
		return false
	}
	m.hung = w.now
	return true
}
