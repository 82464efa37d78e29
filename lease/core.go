package lease

import (
	"cmp"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store"
)

// rules decide what a process does about the slots of its pool. They are pure: from what the store
// shows, the time and the wanted fence they decide what to write, or why not. The safety argument is in
// docs/protocol.md; its steps are:
//
//   - A grant is (after, fence]. A claim starts at the fence it found, or later; a renewal keeps the
//     start and moves the fence forward. Each writes by compare-and-swap, and counts once confirmed.
//   - Confirmed ticks belong to their holder for good. If the store has less, the holder writes them
//     again, unless another may have been granted the worker since.
//   - In a strict pool no fence lies further ahead than newcomers wait, by any two clocks in use.
type rules struct {
	layout     firn.Layout
	token      string
	tolerance  time.Duration
	strict     time.Duration
	grace      time.Duration // how long a holder may take to notice that the store has forgotten it, and to write its slot again
	policyLead firn.Tick     // the lead of a holder with a rollback policy; 0: no policy
	// trusting: the store is embedded and keeps what it confirmed.
	trusting bool
}

// A holding is the confirmed grant of a holder.
type holding struct {
	worker  int64
	after   firn.Tick // the start of the grant; no two claims of a worker in this process have the same
	fence   firn.Tick
	since   time.Time
	over    store.Revision // the revision that the claim replaced; 0: the slot had no record
	looked  reading        // when the latest look that counts began, or the claim
	forgot  bool           // a later look has found the slot forgotten, and could not write it again
	given   bool           // a release was tried, which may have been applied
	overlap error          // the loss, if another may have been granted the same ticks; kept until the last tick used is written
}

// A move is what a holder writes.
type move struct {
	holding
	free   bool   // release the slot
	taken  bool   // release it, but not by its holder
	gone   bool   // nor will its holder come back: see [Slot]
	write  bool   // false: the record found is right
	forgot bool   // the store has less than it had confirmed
	life   string // of the store that confirmed it
}

// stand decides about a held slot. Found is the store's record, nil if there is no record; wish is
// the wanted fence, which counts only if it is further than the one held. Late: newcomers may have waited long
// enough since the look before; then another may have been granted the worker, and be forgotten too.
func (r *rules) stand(h holding, found *Slot, now, wish firn.Tick, late bool) (move, error) {
	if r.ended(h.fence, now) {
		return move{}, lost("its fence will pass within the margin of clocks, or has, and the pool is strict")
	}
	m := move{holding: h, forgot: r.forgot(h, found)}
	unwritten := found == nil || found.revision == h.over || found.Owner == r.token // not written by others
	switch {
	case m.forgot && unwritten && h.fence < now:
		return move{}, overlap("its slot has vanished, or is an older copy, after its fence")
	case m.forgot && unwritten && late:
		return move{}, errOverdue
	case m.forgot && unwritten:
		m.write = true // until the store has the fence again, the slot looks idle too early
	case found.Owner == r.token && found.After > h.after:
		// This process claimed it again, for a switch. That claim may not be in held yet.
		return move{}, fmt.Errorf("%w from tick %d on", errClaimedAgain, found.After+1)
	case m.forgot && found.Gone:
		return move{}, overlap(fmt.Sprintf("an operator took it back at tick %d, as that of a holder that is gone, and it is held here up to tick %d", found.Fence, h.fence))
	case m.forgot:
		return move{}, overlap(fmt.Sprintf("it was claimed by %s from tick %d on, and is held here up to tick %d",
			found.holder(), found.After+1, h.fence))
	case (found.Free || found.Owner != r.token) && late && h.fence >= now:
		return move{}, errOverdue
	case found.Free:
		return move{}, lost("it was taken back, or given back by another that had taken it")
	case found.Owner != r.token:
		return move{}, lost("it was taken by " + found.holder())
	default:
		m.fence = max(h.fence, wish)
		if m.write = m.fence > h.fence; m.write {
			m.fence = max(m.fence, found.Fence) // a concurrent renewal may have moved it further
		}
	}
	return m, r.late(h, m, now)
}

// errClaimedAgain: this process has a later holding of the worker; of a [Loan], this or another process.
var errClaimedAgain = lost("it was claimed again here")

// errPast ends a holding for good: its slot is no longer read, renewed or released.
var errPast = lost("its fence has passed, or may have by the clock of another")

// late returns [errPast] if the move would renew a fence that has passed: another may have been granted
// the worker since, and only a claim detects that the store has forgotten it.
func (r *rules) late(h holding, m move, now firn.Tick) error {
	if m.fence > h.fence && (h.fence < now || r.ended(h.fence, now)) {
		return errPast
	}
	return nil
}

// idle reports whether a worker may be claimed: its holder released it, or its fence has passed by
// every clock in use, including that of a holder that was cut off. So a claim that the store has
// forgotten never lies above a fence that has not passed by its holder's clock.
func (r *rules) idle(s Slot, now firn.Tick) bool {
	return s.Fence < 0 || s.Fence < now-r.after(s)
}

// after is how many ticks must pass after a worker's fence before it may be claimed.
func (r *rules) after(s Slot) firn.Tick {
	if s.Free && (!s.Taken || s.Gone) || r.trusting {
		return 0 // it has no holder, or all processes share one clock
	}
	return r.ticks(2*r.tolerance) + 1 // a tick for rounding
}

// FreeAt returns from when a slot of the pool in a store can be leased, unless its holder renews it: when the tick of its
// fence has ended, or twice the tolerance of clocks later if its holder did not release it.
func (p *Pool) FreeAt(in store.Store, s Slot) time.Time {
	r := rules{layout: p.Layout, tolerance: time.Duration(p.Tolerance), trusting: in.Traits().Embedded}
	return r.idleAt(s)
}

// idleAt returns when a worker may be claimed.
func (r *rules) idleAt(s Slot) time.Time {
	return endOf(s.Fence, r.layout).Add(time.Duration(r.after(s)) * r.layout.Unit())
}

// forgot reports whether the store has less of a slot than it had confirmed: the record before the
// claim, an older copy, an earlier claim of this process, or another grant of the same ticks.
func (r *rules) forgot(h holding, found *Slot) bool {
	switch {
	case found == nil, found.revision == h.over:
		return true
	case found.Owner == r.token:
		return found.After < h.after || !found.Free && found.After == h.after && found.Fence < h.fence
	default:
		return found.After < h.fence && found.After != noFence
	}
}

// errOverdue: a holder that newcomers have not waited for finds that the store has forgotten it, or may have before another
// got the worker.
var errOverdue = overlap("its slot has vanished, is an older copy or another's, and newcomers may not have waited for this look")

func overlap(why string) error { return fmt.Errorf("%w: %w", ErrOverlap, lost(why)) }

func lost(why string) error { return fmt.Errorf("%w: %s", ErrLost, why) }

// leave decides what to write when a slot is released, given the last tick used. If another process has
// the slot by now, leave writes only if the store was set back so that the other's grant begins, or
// would begin, below that tick: that grant must end too, and its holder finds this record. It writes
// nothing after the fence: another may have been granted the worker since, and a slot that was never
// released tells newcomers that the store has forgotten that.
func (r *rules) leave(h holding, found *Slot, now, last firn.Tick) move {
	m := move{holding: h, free: true, forgot: r.forgot(h, found)}
	if h.given && found != nil && found.Owner != r.token && found.After >= last {
		m.forgot = false // it was granted after this release
	}
	m.fence = min(h.fence, last)
	switch {
	case !m.forgot && h.fence < now && !r.trusting:
	case found == nil, found.Owner == r.token && found.After <= h.after:
		m.write = true
	case found.Owner == r.token:
		// This process claimed it again.
	case found.Fence < m.fence, !found.Free && found.After < m.fence && found.After != noFence:
		m.fence, m.write = max(m.fence, found.Fence), true
		m.taken = !found.Free || found.Taken
	}
	return m
}

// unclaim decides what to write to a slot whose claim was not used. If the record is still this claim,
// it restores the fence from before. The start of the claim stays, above that fence: an earlier holder
// that comes back finds its worker lost, but not its ticks granted again.
func (r *rules) unclaim(h holding, found *Slot, before Slot) move {
	m := move{holding: h, free: before.Free || before.revision == 0}
	m.fence, m.taken, m.gone = before.Fence, before.Taken, before.Gone
	m.write = found != nil && found.Owner == r.token && found.After == h.after && !found.Free
	return m
}

// claim decides which ticks of a free slot to claim: those after its fence and above a given tick.
func (r *rules) claim(slot Slot, ask Ask, above firn.Tick) (holding, error) {
	h := holding{worker: slot.Worker, over: slot.revision, after: max(slot.Fence, above)}
	if slot.Fence < 0 {
		// The store may have forgotten a former holder, whose ids ran ahead by the same lead. An embedded
		// store forgets nothing, but its owner may have removed it; the present tick is not waited for, as
		// it may last for hours.
		begin := ask.Now + r.lead(ask)
		if r.trusting {
			begin--
		}
		h.after = max(h.after, begin)
	}
	if r.strict > 0 {
		h.after = max(h.after, ask.Now+r.ticks(r.wait())+1)
	}
	h.fence = ask.fence(h.after, r.layout)
	if h.fence <= h.after {
		return holding{}, &firn.TimeExhaustedError{Layout: r.layout, End: r.layout.End()}
	}
	if r.strict > 0 {
		h.fence = min(h.fence, h.after+r.reach())
	}
	return h, nil
}

// above returns the tick above which every claim in a pool starts, whatever its slots say.
func (r *rules) above(p Pool, ask Ask) firn.Tick {
	switch {
	case r.trusting:
		return -1
	case p.From == 0:
		// A store without a clock: newcomers have waited, but if ticks are long, a former holder
		// may have used the present tick. This holds for a virtual clock that begins in the past, too.
		return ask.Now
	}
	return p.From + max(r.lead(ask), -1)
}

// lead is how far ahead of its clock a former holder may have run: as far as the process that
// asks may, and at most the tolerance, see covers. It is negative for a virtual clock that is behind.
func (r *rules) lead(ask Ask) firn.Tick {
	lead := ask.From - 1 - ask.Now
	if r.policyLead > 0 {
		lead = max(lead, r.policyLead)
	}
	return min(lead, r.ticks(r.tolerance))
}

// outwaited decides about a claim in a strict pool after its wait: the record found must be the one
// that the claim wrote. The grant starts at the present, if that is later.
func (r *rules) outwaited(h holding, found *Slot, now firn.Tick, ask Ask) (move, error) {
	if found == nil || found.Owner != r.token || found.Free || found.After != h.after {
		return move{}, fmt.Errorf("its slot changed while the claim waited: %w", errAgain)
	}
	m := move{holding: h, write: true}
	m.after = max(h.after, now-1)
	// No id was issued under the claim yet, so its fence may move back.
	m.fence = max(r.bounded(ask.fence(m.after, r.layout), now), m.after)
	return m, nil
}

// margin is the most that two clocks in use may differ: each is within the tolerance of its
// server's clock, and each server of a store is within the tolerance of the true time.
func (r *rules) margin() time.Duration { return 4 * r.tolerance }

// wait is how long a claim waits in a strict pool: the strict wait, and the error of this process's
// clock, which holders do not know.
func (r *rules) wait() time.Duration {
	if r.strict == 0 {
		return 0
	}
	return r.strict + r.tolerance
}

// reach is how far ahead of the clock a fence may lie in a strict pool, in ticks. Let S be the strict
// wait, W and L a holder's window and lead, and e its tolerance. A forgotten fence is at most T1 + e + W
// + L by the clock of one server. A newcomer starts at T2 + S or later by that of another server, which
// may be 2e behind. So W + L must be at most S - 3e, less a unit each for rounding; e more is a reserve.
func (r *rules) reach() firn.Tick { return max(r.ticks(r.strict-r.margin())-2, 0) }

// bounded limits a fence to the reach. A generator that runs further ahead waits there.
func (r *rules) bounded(fence, now firn.Tick) firn.Tick {
	if r.strict == 0 {
		return fence
	}
	return min(fence, now+r.reach())
}

// ended reports whether a fence in a strict pool may have passed by any clock in use. Then another
// may have been granted the worker, whatever the store shows.
func (r *rules) ended(fence, now firn.Tick) bool {
	return r.strict > 0 && fence <= now+r.ticks(r.margin())+1
}

// beyond reports whether a fence lies further ahead than any holder of a strict pool may move it,
// even for a claim that is still waiting and a clock that is ahead.
func (r *rules) beyond(fence, now firn.Tick) bool {
	return r.strict > 0 && fence > now+r.ticks(r.wait()+r.margin())+2+r.reach()
}

func (r *rules) ticks(d time.Duration) firn.Tick { return firn.Tick(d / r.layout.Unit()) }

// counted returns an error if newcomers do not count all of a holder's lead in a pool that is not strict: they expect a
// forgotten holder's ids no further ahead than the tolerance of clocks.
func (r *rules) counted(g firn.Config) error {
	const where = "the tolerance of clocks less what the clock may be ahead; a strict pool allows more"
	fenced := fencedLead(g)
	if g.Ahead > 0 && fenced > r.tolerance {
		return config.In("Ahead", config.Check("ahead", g.Ahead, 0, max(r.tolerance-(fenced-g.Ahead), 0), where))
	}
	field := "Ahead"
	if g.Lead() > fenced {
		field = "Rollback"
	}
	return config.In(field, config.Check("lead", g.Lead(), 0, r.tolerance, "the tolerance of clocks; a strict pool allows more"))
}

// covers returns an error if the strict wait is too short for how far ahead a holder may issue, fenced being the lead
// without the policy ahead, or the window too short to renew in time: a holder gives its worker up a margin
// before the fence, and renews between a half and a quarter of the window before it.
func (r *rules) covers(window, fenced time.Duration) error {
	return cmp.Or(
		config.In("Window", config.Check("window", window, 4*(r.margin()+r.layout.Unit()), maxWindow,
			"in a strict pool it must be sixteen times the tolerance of clocks and four units")),
		config.In("Strict", config.Check("strict wait", r.strict, window+fenced+r.margin()+2*r.layout.Unit(), maxStrict,
			"window, lead, four times the tolerance of clocks and two units together")))
}
