package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// A rival is a process of the usual design: a worker number leased with a time to live and kept by a
// heartbeat, and a generator that counts from its own clock and refuses when that goes back. It is as
// careful as the best of such systems: taking a number is atomic, a heartbeat names its owner, and a
// process that finds its number gone stops and takes another. It lacks only the fence: its ids are not
// tied to the state of the store.
type rival struct{ m *machine }

// beats is how many heartbeats there are per time to live.
const beats = 3

func (r *rival) run(l *life) {
	l.grants = nil // its grants are times of day, not ticks
	for turn := 0; !l.asked; turn++ {
		n := r.numbered(l, fmt.Sprintf("%s %d %d", r.m.name, l.number, turn))
		if n == nil {
			r.m.rest(l, seldom(r.m.w.choices, 5*time.Second))
			continue
		}
		n.issue()
		n.giveBack()
	}
}

// A numbered rival has a worker number.
type numbered struct {
	*rival
	l      *life
	token  string
	worker int64
	lost   bool
	gone   bool // it issues no more ids

	last     int64 // tick
	sequence int64
}

func rivalKey(worker int64) string { return fmt.Sprintf("rival/%d", worker) }

// numbered takes the first number that is free.
func (r *rival) numbered(l *life, token string) *numbered {
	w := r.m.w
	for worker := range w.plan.layout.MaxWorker() + 1 {
		if l.asked {
			return nil
		}
		_, err := ask(context.Background(), request{m: r.m, op: "write", key: rivalKey(worker)}, func(s *side, _ []store.Entry) (bool, error) {
			return true, s.take(rivalKey(worker), token, w.plan.window)
		})
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return nil // it tries again later; if this was applied, the number stays unused for its time to live
		}
		w.trace.say(r.m, "has worker %d", worker)
		n := &numbered{rival: r, l: l, token: token, worker: worker, last: -1}
		r.m.spawn(n.beat)
		return n
	}
	return nil
}

// beat prolongs the lease until it is lost. While the store is unreachable the process continues, as
// such systems do: otherwise an outage would stop them too.
func (n *numbered) beat() {
	w := n.m.w
	for !n.gone && !n.lost {
		if err := n.m.Sleep(context.Background(), w.plan.window/beats); err != nil || n.gone {
			return
		}
		_, err := ask(context.Background(), request{m: n.m, op: "write", key: rivalKey(n.worker)}, func(s *side, _ []store.Entry) (bool, error) {
			return true, s.prolong(rivalKey(n.worker), n.token, w.plan.window)
		})
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
			w.trace.say(n.m, "has lost worker %d", n.worker)
			n.lost = true
		}
	}
}

// issue makes ids until the number is lost or it is time to leave.
func (n *numbered) issue() {
	w := n.m.w
	for !n.l.asked && !n.lost {
		for range 1 + w.choices.IntN(6) {
			w.steps++
			if id, ok := n.next(); ok {
				w.oracle.id(n.l, id)
			}
		}
		n.m.rest(n.l, seldom(w.choices, w.think()))
	}
	n.gone = true
}

// next is the generator of the published snowflake: one clock reading, a sequence within the tick, a
// wait for the next tick when the sequence is used up.
func (n *numbered) next() (firn.ID, bool) {
	layout := n.m.w.plan.layout
	for {
		tick, err := layout.Tick(n.m.Wall())
		now := int64(tick)
		switch {
		case err != nil || now < n.last:
			return 0, false // refused: the clock went back
		case now > n.last:
			n.last, n.sequence = now, 0
		case n.sequence == layout.MaxSequence():
			if n.m.Sleep(context.Background(), layout.Time(tick+1).Sub(n.m.Wall())) != nil || n.l.asked || n.lost {
				return 0, false
			}
			continue
		default:
			n.sequence++
		}
		id, err := layout.Compose(firn.Parts{Tick: tick, Worker: n.worker, Sequence: n.sequence})
		return id, err == nil
	}
}

// giveBack removes the number, if this process still owns it.
func (n *numbered) giveBack() {
	w := n.m.w
	_, err := ask(context.Background(), request{m: n.m, op: "write", key: rivalKey(n.worker)}, func(s *side, _ []store.Entry) (bool, error) {
		return true, s.prolong(rivalKey(n.worker), n.token, 0)
	})
	w.trace.say(n.m, "gives back worker %d: %v", n.worker, err)
}

// Below are the store's times to live, which Firn does not use.

func (s *side) take(key, token string, ttl time.Duration) error {
	if _, err := s.get(s.entries, key); err == nil {
		return store.ErrConflict
	}
	i, ok := find(s.entries, key)
	old := store.Revision(0)
	if ok {
		old = s.entries[i].Revision // expired
	}
	delete(s.w.store.expires, key)
	if _, err := s.swap(key, old, []byte(token)); err != nil {
		return err
	}
	s.w.store.expires[key] = s.w.now + int64(ttl)
	return nil
}

// prolong has a key expire after a time, which ends it at once if that is 0.
func (s *side) prolong(key, token string, ttl time.Duration) error {
	e, err := s.get(s.entries, key)
	switch {
	case err != nil:
		return err
	case string(e.Value) != token:
		return store.ErrConflict
	}
	s.w.store.expires[key] = s.w.now + int64(ttl)
	return nil
}
