package lease

import (
	"cmp"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store"
)

// rules decide what a process does about the slots of its pool. They are pure: what
// the store shows, the time and a wish go in; what to write, or why not, comes out.
// The safety argument is in docs/protocol.md; its steps are:
//
//   - A grant is (after, fence]. A claim begins at the fence it found, or later; a
//     renewal keeps the beginning and moves the fence forward. The write is a
//     compare-and-swap over what was found, and counts once it is confirmed.
//   - What was confirmed to a holder is its own for good. It writes that again where
//     the store has less, unless another may have been granted the worker since.
//   - In a strict pool no fence lies further ahead than newcomers wait, by any two
//     clocks that may be in use.
type rules struct {
	layout    firn.Layout
	token     string
	tolerance time.Duration
	strict    time.Duration
	// trusting: the store is embedded and keeps what it confirmed.
	trusting bool
}

// A holding is what was confirmed to a holder.
type holding struct {
	worker int64
	after  firn.Tick // the start of the grant; no two claims of a worker here have the same
	fence  firn.Tick
	since  time.Time
	over   store.Revision // what the claim replaced; 0: nothing
	// overlap is why the worker was lost, if another may have been granted its ticks. It is
	// kept until the last tick used is written.
	overlap error
}

// A move is what a holder writes.
type move struct {
	holding
	free   bool // it is given back
	taken  bool // it is given back, but not by its holder
	write  bool // else what was found is as it should be
	forgot bool // the store has less than was confirmed
}

// stand decides about a slot that is held. Found is what the store has, nil if nothing; wish is
// the fence asked for, which counts if it is further than the one held.
func (r *rules) stand(h holding, found *Slot, now, wish firn.Tick) (move, error) {
	if r.ended(h.fence, now) {
		return move{}, lost("its fence will pass within the margin of clocks, or has, and the pool is strict")
	}
	m := move{holding: h, forgot: r.forgot(h, found)}
	unwritten := found == nil || found.revision == h.over || found.Owner == r.token // by others
	switch {
	case m.forgot && unwritten && h.fence < now:
		return move{}, overlap("its slot has vanished, or is an older copy, after its fence")
	case m.forgot && unwritten:
		m.write = true // until the store has the fence again, the slot looks idle too early
	case found.Owner == r.token && found.After > h.after:
		// Claimed again here, for a switch, by a claim that may not be noted yet.
		return move{}, lost(fmt.Sprintf("it was claimed again here from tick %d on", found.After+1))
	case m.forgot:
		return move{}, overlap(fmt.Sprintf("it was claimed by %s from tick %d on, and is held here up to tick %d",
			found.holder(), found.After+1, h.fence))
	case found.Free:
		return move{}, lost("it was taken back, or given back by another that had taken it")
	case found.Owner != r.token:
		return move{}, lost("it was taken by " + found.holder())
	default:
		m.fence = max(h.fence, wish)
		if m.write = m.fence > h.fence; m.write {
			m.fence = max(m.fence, found.Fence) // it may be confirmed to another renewal by now
		}
	}
	return m, r.late(h, m, now)
}

// errPast ends a holding for good: it is neither renewed nor given back.
var errPast = lost("its fence has passed, or may have by the clock of another")

// late returns [errPast] if a fence is moved that has passed. Another may have been granted the
// worker since, and the store may have forgotten that. More ticks are another grant, which only a
// claim can grant, since it detects what the store has forgotten.
func (r *rules) late(h holding, m move, now firn.Tick) error {
	if m.fence > h.fence && (h.fence < now || r.ended(h.fence, now)) {
		return errPast
	}
	return nil
}

// idle reports whether a worker may be claimed: its holder gave it back, or its fence has passed by
// any clock in use, also that of a holder that was cut off. So what was claimed of others, and the
// store has forgotten, never lies above a fence that has not passed by its holder's clock.
func (r *rules) idle(s Slot, now firn.Tick) bool {
	return s.Fence < 0 || s.Fence < now-r.after(s)
}

// after is for how many ticks after its fence a worker is not claimed.
func (r *rules) after(s Slot) firn.Tick {
	if s.Free && (!s.Taken || s.Gone) || r.trusting {
		return 0 // nobody holds it, or all have one clock
	}
	return r.ticks(2*r.tolerance) + 1 // a tick for rounding
}

// idleAt returns when a worker may be claimed.
func (r *rules) idleAt(s Slot) time.Time {
	return endOf(s.Fence, r.layout).Add(time.Duration(r.after(s)) * r.layout.Unit())
}

// forgot reports whether the store has less of a slot than was confirmed to its holder: what was
// there before, an older copy, an earlier claim made here, or another grant of the same ticks.
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

func overlap(why string) error { return fmt.Errorf("%w: %w", ErrOverlap, lost(why)) }

func lost(why string) error { return fmt.Errorf("%w: %s", ErrLost, why) }

// leave decides what is written of a slot that is given back, with the last tick used. If it
// belongs to another by now, nothing is: unless the store was set back, so that the other's grant
// begins, or would begin, below that tick. That grant must end too: the other finds this one in its way.
// Nor is anything written after the fence: another may have been granted the worker since, and a
// slot that was never given back is what tells newcomers that the store has forgotten that.
func (r *rules) leave(h holding, found *Slot, now, last firn.Tick) move {
	m := move{holding: h, free: true, forgot: r.forgot(h, found)}
	m.fence = min(h.fence, last)
	switch {
	case !m.forgot && h.fence < now && !r.trusting:
	case found == nil, found.Owner == r.token && found.After <= h.after:
		m.write = true
	case found.Owner == r.token:
		// Claimed again here.
	case found.Fence < m.fence, !found.Free && found.After < m.fence && found.After != noFence:
		m.fence, m.write = max(m.fence, found.Fence), true
		m.taken = !found.Free || found.Taken
	}
	return m
}

// unclaim decides what is written of a slot whose claim was not used: if the claim is there, the
// fence that it had before, and whether it was given back then. The start of the claim stays,
// above that fence: an earlier holder that comes back finds its worker lost, and not its ticks
// granted again.
func (r *rules) unclaim(h holding, found *Slot, before Slot) move {
	m := move{holding: h, free: before.Free || before.revision == 0}
	m.fence, m.taken = before.Fence, before.Taken
	m.write = found != nil && found.Owner == r.token && found.After == h.after && !found.Free
	return m
}

// claim decides which ticks of a free slot are claimed: those after its fence and above a tick.
func (r *rules) claim(slot Slot, ask Ask, above firn.Tick) (holding, error) {
	h := holding{worker: slot.Worker, over: slot.revision, after: max(slot.Fence, above)}
	if slot.Fence < 0 && !r.trusting {
		// The store may have forgotten a holder that is gone, whose ids ran as far ahead.
		h.after = max(h.after, ask.Now+r.lead(ask))
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

// above returns the tick above which all claims in a pool begin, beside what its slots say.
func (r *rules) above(p Pool, ask Ask) firn.Tick {
	switch {
	case r.trusting:
		return -1
	case p.From == 0:
		// A store without a clock: its newcomers have waited, but whoever is gone may have used
		// the tick of the present, if ticks are long.
		return ask.Now + min(r.lead(ask), 0)
	}
	return p.From + max(r.lead(ask), -1)
}

// lead is how far ahead of its clock a holder that is gone may have run: as far as the one who
// asks may, and at most the tolerance. For a virtual clock that is behind it is negative.
func (r *rules) lead(ask Ask) firn.Tick { return min(ask.From-1-ask.Now, r.ticks(r.tolerance)) }

// outwaited decides what a claim in a strict pool is after its wait: found must be as it was
// written. It begins at the present, if that is later.
func (r *rules) outwaited(h holding, found *Slot, now firn.Tick, ask Ask) (move, error) {
	if found == nil || found.Owner != r.token || found.Free || found.After != h.after {
		return move{}, lost("its slot changed while the claim waited")
	}
	m := move{holding: h, write: true}
	m.after = max(h.after, now-1)
	// Nothing was issued under the claim yet, so its fence may move back.
	m.fence = max(r.bounded(ask.fence(m.after, r.layout), now), m.after)
	return m, nil
}

// margin is how far two clocks in use may differ: each is within the tolerance of its
// server's, and two servers of a store are within it of the time.
func (r *rules) margin() time.Duration { return 4 * r.tolerance }

// wait is how long a claim waits in a strict pool: longer by what the clock here may be off. How
// far that is differs from process to process, and holders do not count with it.
func (r *rules) wait() time.Duration {
	if r.strict == 0 {
		return 0
	}
	return r.strict + r.tolerance
}

// reach is how far ahead of the clock a fence may lie in a strict pool, in ticks. With
// the strict wait S, a holder's window W and lead L, and its tolerance e: a fence that
// was forgotten is at most T1 + e + W + L, by the clock of one server; a newcomer begins
// at T2 + S or later, by that of another, which may be 2e behind. So W + L is at
// most S - 3e, less a unit each for rounding; another e is to spare.
func (r *rules) reach() firn.Tick { return max(r.ticks(r.strict-r.margin())-2, 0) }

// bounded returns a fence that is no further ahead. A generator that runs further waits there.
func (r *rules) bounded(fence, now firn.Tick) firn.Tick {
	if r.strict == 0 {
		return fence
	}
	return min(fence, now+r.reach())
}

// ended reports whether a fence may have passed, by any clock in use, in a strict pool: then
// another may have been granted the worker, whatever the store says.
func (r *rules) ended(fence, now firn.Tick) bool {
	return r.strict > 0 && fence <= now+r.ticks(r.margin())+1
}

// beyond reports whether a fence lies further ahead than any holder of a strict pool may have
// moved it, even by a claim that still waits and a clock that is ahead.
func (r *rules) beyond(fence, now firn.Tick) bool {
	return r.strict > 0 && fence > now+r.ticks(r.wait()+r.margin())+2+r.reach()
}

func (r *rules) ticks(d time.Duration) firn.Tick { return firn.Tick(d / r.layout.Unit()) }

// covers returns an error for a strict wait too short for what a holder may issue ahead, or a
// window too short to be renewed in time: a worker is given up a margin before its fence, and
// renewed between a half and a quarter of the window before it.
func (r *rules) covers(window, lead time.Duration) error {
	if r.strict == 0 {
		return nil
	}
	return cmp.Or(
		config.Check("window", window, 4*(r.margin()+r.layout.Unit()), maxWindow,
			"in a strict pool it must be sixteen times the tolerance of clocks and four units"),
		config.Check("strict wait", r.strict, window+lead+r.margin()+2*r.layout.Unit(), maxStrict,
			"window, lead, four times the tolerance of clocks and two units together"))
}
