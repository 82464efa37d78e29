package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// A register is the store of a world: its servers, and the faults that affect them.
type register struct {
	w         *world
	main      *side
	old       *side // in a fork, the primary that was cut off; otherwise nil
	leaks     bool  // in a fork, requests reach the other side too
	expires   map[string]int64
	revisions int64 // never reused, whatever happens to the entries
	lives     int
	lost      int64          // time of the latest loss
	copied    store.Revision // of the pool's record in the latest restored copy
	down      int64          // unavailable until then
	ambush    bool           // wipe the store when a key that is about to be created already exists
}

func newRegister(w *world) *register {
	s := &register{w: w, expires: map[string]int64{}}
	s.main = s.newSide(nil)
	return s
}

// newSide returns a server with its own clock and life.
func (s *register) newSide(entries []store.Entry) *side {
	w := s.w
	new := &side{w: w, name: fmt.Sprint("server ", s.lives+1)}
	new.clock = between(stream(w.Seed, streamServers<<8|uint64(s.lives)), int64(w.plan.serverSkew))
	if w.plan.replicated {
		new.replica = &replica{}
	}
	s.begin(new)
	new.reload(entries)
	return new
}

// begin begins a new life.
func (s *register) begin(of *side) {
	s.lives++
	if !s.w.plan.lifeless {
		of.life = fmt.Sprint("life ", s.lives)
	}
}

// reached returns the server that a request of a machine reaches: that of its side; in a fork that leaks, one time in
// sixteen the other, because connections come and go.
func (s *register) reached(m *machine) *side {
	if s.old == nil {
		return s.main
	}
	if m.cutOff != (s.leaks && s.w.latencies.Uint64()&15 == 0) {
		return s.old
	}
	return s.main
}

// suffer applies a fault to the store.
func (s *register) suffer(k kind, r *rand.Rand) {
	w := s.w
	switch k {
	case outage:
		d := w.faults.duration(maxPause)
		w.trace.say(nil, "the store is unavailable for %v", time.Duration(d))
		s.down = max(s.down, w.now+d)
	case unlink:
		s.unlink(w.faults.duration(maxPause))
	case failover:
		if s.promote() {
			s.endFork()
		}
	case fork:
		s.fork(w.faults.duration(2*maxPause), r)
	case rebirth:
		s.begin(s.main)
		w.trace.say(nil, "the store is restarted: %s", s.main.life)
	case wipe:
		if r.IntN(3) == 0 && !w.plan.duel {
			s.ambush = true
			return
		}
		s.wipe(r.IntN(2) == 0)
	case restore:
		ago := w.faults.duration(5 * time.Minute)
		if r.IntN(2) == 0 { // a copy that just lacks the latest claim
			ago = w.now - w.faults.claimedAt + 1
		}
		newLife := r.IntN(2) == 0
		if w.plan.duel { // the latest that does not show its age otherwise
			ago, newLife = 0, false
		}
		s.restore(ago, newLife)
	case evict:
		s.evict(r)
	default:
	}
}

// unlink keeps writes from the replica, for a time.
func (s *register) unlink(d int64) {
	on := s.main
	if on.replica == nil {
		return
	}
	s.w.trace.say(nil, "its replica is cut off for %v", time.Duration(d))
	on.replica.linked = false
	s.w.after(d, func() {
		if s.old != on && !on.gone {
			on.attach()
		}
	})
}

// promote makes the replica the primary, with its present data. The old primary continues beside it,
// but confirms nothing any more, unless it never waited for its replica.
func (s *register) promote() bool {
	from := s.main
	if from.replica == nil || s.old != nil {
		return false
	}
	from.replica.linked = false
	s.old, s.main = from, s.newSide(from.replica.entries)
	s.main.past = slices.Concat(s.main.past[:0:0], from.past, s.main.past)
	s.w.trace.say(nil, "the replica takes over, as %s", s.main.life)
	return true
}

// fork promotes the replica beside the living primary. Some processes reach the one, some the other,
// until the old one is lost. If a primary confirms alone, there is no fork: those would be two stores,
// and strict pools do not help.
func (s *register) fork(d int64, r *rand.Rand) {
	w := s.w
	if s.noticing() || !s.promote() {
		return
	}
	if w.plan.async {
		s.endFork()
		return
	}
	for i, m := range w.machines {
		m.cutOff = r.IntN(2) == 0
		if w.plan.duel { // holders on the one side, newcomers on the other
			m.cutOff = i == 0
		}
	}
	both := s.old
	s.leaks = r.IntN(2) == 0
	w.trace.say(nil, "both sides answer, for %v", time.Duration(d))
	w.after(d/2, func() { // some processes change sides
		for _, m := range w.machines {
			if s.old == both && r.IntN(4) == 0 {
				m.cutOff = !m.cutOff
			}
		}
	})
	w.after(d, func() {
		if s.old == both {
			s.endFork()
		}
	})
}

func (s *register) endFork() {
	if s.old == nil {
		return
	}
	s.w.trace.say(nil, "%s is gone", s.old.name)
	s.old.gone = true
	s.old = nil
}

// spared reports whether the store must not lose anything now: if newcomers wait for living holders,
// these must not be on the other side of a fork.
func (s *register) spared() bool {
	if s.w.plan.regime == Reasserted && s.old != nil {
		return true
	}
	s.lost = max(s.w.now, 1)
	return false
}

// noticing reports whether holders may still have to reach the store, to notice a loss.
func (s *register) noticing() bool {
	w := s.w
	return w.plan.regime == Reasserted && s.lost > 0 && w.now-s.lost < 2*int64(w.plan.grace())
}

// wipe empties the store.
func (s *register) wipe(newLife bool) {
	if s.spared() {
		return
	}
	s.w.trace.say(nil, "the store is wiped, a new life: %v", newLife)
	if newLife {
		s.begin(s.main)
	}
	s.main.reload(nil)
}

// restore sets the store back to an older copy. If only living holders protect the lost state, the
// copy must show its age: the store begins a new life, or the copy has no fences ahead and some slot
// was held.
func (s *register) restore(ago int64, newLife bool) {
	w := s.w
	if w.plan.regime == Reasserted {
		if newLife = newLife && !w.plan.lifeless; !newLife {
			ago += int64(w.plan.longestWindow()) + 5*int64(w.plan.layout.Unit()) + 2*int64(w.plan.skew+w.plan.tolerance) + int64(2*time.Second)
		}
	}
	entries, i := s.main.before(ago)
	// Nor twice within one wait to the same record of the pool: a newcomer waiting because of that
	// record starts its wait again for any other record.
	var record store.Revision
	if at, ok := find(entries, "firn/"+pool+"/pool"); ok {
		record = entries[at].Revision
	}
	if w.plan.regime == Reasserted && !newLife && (!heldOnce(entries) || s.noticing() && record == s.copied) {
		return
	}
	if s.spared() {
		return
	}
	s.copied = record
	w.trace.say(nil, "the store is set back by %v, a new life: %v", time.Duration(ago), newLife)
	if newLife {
		s.begin(s.main)
	}
	s.main.goBack(i)
}

// heldOnce reports whether a copy has a slot that was held when it was made: it was not given back, and newcomers have
// not waited for its holder.
func heldOnce(entries []store.Entry) bool {
	var record struct {
		Settled int64 `json:",string"`
	}
	if at, ok := find(entries, "firn/"+pool+"/pool"); ok {
		_ = json.Unmarshal(entries[at].Value, &record) // none: 0
	}
	for _, e := range list(entries, "firn/"+pool+"/slot/") {
		var slot struct {
			Fence int64 `json:",string"`
			Free  bool
		}
		if err := json.Unmarshal(e.Value, &slot); err == nil && !slot.Free && slot.Fence > record.Settled {
			return true
		}
	}
	return false
}

func (s *register) evict(r *rand.Rand) {
	entries := s.main.entries
	if len(entries) == 0 {
		return
	}
	i := r.IntN(len(entries))
	if at, ok := find(entries, s.w.faults.aimedKey); ok {
		i = at
	}
	s.w.faults.aimedKey = ""
	s.w.trace.say(nil, "the store loses %s", entries[i].Key)
	s.main.reload(slices.Delete(slices.Clone(entries), i, i+1))
}

// operator takes a slot away, as firn workers release does.
func (s *register) operator(r *rand.Rand) {
	layout := s.w.plan.layout
	worker := r.Int64N(s.w.plan.workers())
	datacenter := r.Int64N(layout.MaxDatacenter() + 1)
	_, err := lease.Reclaim(context.Background(), direct{s}, pool, datacenter, worker, time.Time{})
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

// mend ends all faults.
func (s *register) mend() {
	s.down, s.ambush = 0, false
	s.endFork()
	s.main.clock = 0
	s.main.attach()
}

func (s *register) expired(key string) bool {
	at, ok := s.expires[key]
	return ok && at <= s.w.now
}

// direct is the store without a network, for observers outside the simulation.
type direct struct{ *register }

func (s direct) Traits() store.Traits { return store.Traits{} }
func (s direct) Get(_ context.Context, key string) (store.Entry, error) {
	return s.main.get(s.main.entries, key)
}
func (s direct) CompareAndSwap(_ context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := s.main.swap(key, old, value)
	if s.main.replica != nil && s.main.replica.linked {
		s.main.attach()
	}
	return e, err
}
func (s direct) List(_ context.Context, prefix string) ([]store.Entry, error) {
	return list(s.main.entries, prefix), nil
}
func (direct) Close() error { return nil }
