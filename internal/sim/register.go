package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// A register is the store of a world: what it keeps, and what happens to
// requests on their way there and back.
type register struct {
	w         *world
	entries   []store.Entry // sorted by key; replaced, never changed
	expires   map[string]int64
	revisions int64 // never used again, whatever happens to the entries
	down      int64 // away until then
	past      []version
	ambush    bool // the store is wiped when what is about to be created is there already
}

// A version is what the store held from a time on.
type version struct {
	since   int64
	entries []store.Entry
}

const maxPast = 64

func newRegister(w *world) *register { return &register{w: w, expires: map[string]int64{}} }

func (s *register) setTo(entries []store.Entry) {
	s.entries = entries
	s.past = append(s.past, version{s.w.now, entries})
	if len(s.past) > 2*maxPast {
		s.past = slices.Clone(s.past[maxPast:])
	}
}

func find(entries []store.Entry, key string) (int, bool) {
	return slices.BinarySearchFunc(entries, key, func(e store.Entry, key string) int { return strings.Compare(e.Key, key) })
}

// before is what the store held some time ago, as far as is remembered, and its
// place in the past.
func (s *register) before(ago int64) ([]store.Entry, int) {
	for i := len(s.past) - 1; i >= 0; i-- {
		if s.past[i].since <= s.w.now-ago {
			return s.past[i].entries, i
		}
	}
	if len(s.past) >= maxPast {
		return s.past[0].entries, 0
	}
	return nil, -1
}

// restore sets the store back. What it held since is gone for good: it does not
// come back by being set back to that later.
func (s *register) restore(ago int64) {
	s.w.trace.say(nil, "the store is set back by %v", time.Duration(ago))
	entries, i := s.before(ago)
	s.past = s.past[:i+1]
	s.setTo(entries)
}

func (s *register) evict(r *rand.Rand) {
	if len(s.entries) == 0 {
		return
	}
	i := r.IntN(len(s.entries))
	s.w.trace.say(nil, "the store loses %s", s.entries[i].Key)
	s.setTo(slices.Delete(slices.Clone(s.entries), i, i+1))
}

// operator takes a slot away, as firn workers release does.
func (s *register) operator(r *rand.Rand) {
	layout := s.w.plan.layout
	worker := r.Int64N(layout.MaxWorker() + 1)
	datacenter := r.Int64N(layout.MaxDatacenter() + 1)
	_, err := lease.TakeBack(context.Background(), direct{s}, pool, datacenter, worker, time.Time{})
	s.w.trace.say(nil, "an operator takes back worker %d: %v", worker, err)
}

// fence returns the latest fence that a worker has in any datacenter.
func (s *register) fence(worker int64) firn.Tick {
	last := firn.Tick(-1)
	p, err := lease.Inspect(context.Background(), direct{s}, pool)
	if err != nil {
		return last // there is no pool
	}
	for _, slot := range p.Slots {
		if slot.Worker == worker {
			last = max(last, slot.Fence)
		}
	}
	return last
}

// mend ends all that is wrong.
func (s *register) mend() { s.down, s.ambush = 0, false }

func (s *register) get(entries []store.Entry, key string) (store.Entry, error) {
	i, ok := find(entries, key)
	if !ok || s.expired(key) {
		return store.Entry{}, store.ErrNotFound
	}
	return entries[i], nil
}

func (s *register) expired(key string) bool {
	at, ok := s.expires[key]
	return ok && at <= s.w.now
}

func (s *register) swap(key string, old store.Revision, value []byte) (store.Entry, error) {
	i, ok := find(s.entries, key)
	var have store.Revision
	if ok && !s.expired(key) {
		have = s.entries[i].Revision
	}
	if have != old {
		return store.Entry{}, store.ErrConflict
	}
	delete(s.expires, key)
	s.revisions++
	e := store.Entry{Key: key, Value: value, Revision: store.Revision(s.revisions)}
	entries := slices.Clone(s.entries)
	if ok {
		entries[i] = e
	} else {
		entries = slices.Insert(entries, i, e)
	}
	s.setTo(entries)
	return e, nil
}

func list(entries []store.Entry, prefix string) []store.Entry {
	first, _ := find(entries, prefix)
	last := first
	for last < len(entries) && strings.HasPrefix(entries[last].Key, prefix) {
		last++
	}
	return entries[first:last]
}

// direct is the store without a network, for those who are not part of the play.
type direct struct{ *register }

func (s direct) Get(_ context.Context, key string) (store.Entry, error) { return s.get(s.entries, key) }
func (s direct) CompareAndSwap(_ context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	return s.swap(key, old, value)
}
func (s direct) List(_ context.Context, prefix string) ([]store.Entry, error) {
	return list(s.entries, prefix), nil
}
func (direct) Close() error { return nil }

// A client is the store as a machine sees it: the [store.Store] of its process.
type client struct{ m *machine }

// A clocked client is one of a store that has a clock.
type clocked struct{ client }

// Now implements [store.Clock].
func (c clocked) Now(ctx context.Context) (time.Time, error) {
	return ask(ctx, c.m, "clock", true, func([]store.Entry) (time.Time, error) {
		return noon.Add(time.Duration(c.m.w.now)), nil
	})
}

// Get implements [store.Store].
func (c client) Get(ctx context.Context, key string) (store.Entry, error) {
	return ask(ctx, c.m, key, true, func(entries []store.Entry) (store.Entry, error) { return c.m.w.store.get(entries, key) })
}

// List implements [store.Store].
func (c client) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return ask(ctx, c.m, prefix, true, func(entries []store.Entry) ([]store.Entry, error) { return list(entries, prefix), nil })
}

// CompareAndSwap implements [store.Store].
func (c client) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	w := c.m.w
	if w.faults.strikes(refused) {
		w.trace.say(c.m, "write %s: refused", key)
		return store.Entry{}, fmt.Errorf("the simulated store: %w", store.ErrRefused)
	}
	return ask(ctx, c.m, key, false, func([]store.Entry) (store.Entry, error) {
		if w.store.ambush && old == 0 {
			if _, there := find(w.store.entries, key); there {
				w.store.ambush = false
				w.trace.say(nil, "the store is wiped")
				w.store.setTo(nil)
			}
		}
		e, err := w.store.swap(key, old, value)
		w.trace.say(c.m, "write %s over revision %d: revision %d, %v: %s", key, old, e.Revision, err, value)
		return e, err
	})
}

// Close implements [store.Store].
func (c client) Close() error { return nil }

// ask sends a request and waits for the answer: as long as the client has
// patience, or ctx lasts. The request takes effect when it arrives, which may be
// long after nobody waits any more.
func ask[T any](ctx context.Context, m *machine, key string, read bool, do func(entries []store.Entry) (T, error)) (T, error) {
	w, t := m.w, m.w.running
	var (
		value    T
		err      error
		answered bool
	)
	if ctx.Err() != nil {
		return value, store.ContextError(ctx)
	}
	way := w.travel()
	lost := w.faults.strikes(lostRequest)
	if lost {
		w.trace.say(m, "the request for %s is lost", key)
	}
	turn := t.turn + 1
	if !lost {
		w.after(way, func() {
			if w.store.down > w.now || m.cut > w.now {
				return // nobody answers
			}
			entries := w.store.entries
			if read && w.faults.strikes(stale) {
				ago := w.faults.duration(30 * time.Second)
				entries, _ = w.store.before(ago)
				w.trace.say(m, "reads %s as it was %v ago", key, time.Duration(ago))
			}
			v, e := do(entries)
			if w.faults.strikes(lostAnswer) {
				w.trace.say(m, "the answer for %s is lost", key)
				return
			}
			w.after(w.travel(), func() {
				if m.cut > w.now || t.turn != turn || t.ended {
					return
				}
				value, err, answered = v, e, true
				t.wake()
			})
		})
	}
	t.at(w.now + int64(w.plan.patience))
	t.wait(ctx, nil)
	switch {
	case answered && err != nil:
		return value, fmt.Errorf("the simulated store: %s: %w", key, err)
	case answered:
		return value, nil
	case ctx.Err() != nil:
		return value, store.ContextError(ctx)
	default:
		return value, fmt.Errorf("the simulated store: %s: %w: no answer within %v", key, store.ErrUnavailable, w.plan.patience)
	}
}

// travel draws how long a message takes.
func (w *world) travel() int64 {
	if w.faults.strikes(slow) {
		return w.faults.duration(maxPause)
	}
	return int64(w.plan.latency/4) + seldom(w.latencies, w.plan.latency)
}
