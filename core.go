package firn

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A core makes the decisions of a generator: a clock reading goes in, a decision comes
// out. It has no clock, lock or goroutine of its own. A refusal leaves it unchanged.
//
// It counts positions: tick << sequenceBits | sequence. Ids are unique because of
// these rules:
//
//   - It issues only positions in [floor, ceiling), the interval of its grant.
//   - Without a history pos only grows, so no position is issued twice.
//   - With a history pos may return to an earlier tick, but only to that tick's
//     first unused position. The history either knows that position or reports that
//     it does not.
type core struct {
	layout  Layout
	clock   ClockKind
	ahead   int64 // ns that ids may run ahead of the clock; -1 with Virtual: no bound
	chain   Rollback
	start   SequenceStart
	below   uint64 // bound of a random start
	random  func() uint64
	history history

	worker         int64
	before         Tick // the tick before the grant's first
	floor, ceiling uint64
	revoked        bool   // by Halt, until the next grant
	pos            uint64 // the next position
	high           uint64 // the position above every issued one; 0 before the first
	behind         uint64 // the start of the tick above all ids of earlier grants; 0 if there are no such ids
	cur            Tick   // with a history: the tick of pos, -1 before the first

	seen   Tick  // the highest tick the clock has shown, -1 before the first
	seenAt int64 // the clock reading of that tick, in Unix ns
	// The policy history lowers seen when it accepts an earlier time; these are the values before. peak is -1 without one.
	peak   Tick
	peakAt int64
	drift  bool // the policy ahead has issued ids that the clock has not caught up with
}

type action uint8

const (
	actFail action = iota
	actIssue
	actWait   // until the clock shows decision.until
	actSwitch // switch workers, then ask again
)

// A decision says what a generator must do next.
type decision struct {
	act   action
	err   error  // actFail
	until int64  // actWait: Unix ns, or never
	tried bool   // actWait: the wait counts as a try of the policy wait
	full  bool   // actWait: the wait counts towards the limit of the policy history
	from  Tick   // actSwitch: the first that the other worker may have
	why   string // why a policy cannot serve, after its name
	first uint64 // actIssue: the first position
	count uint64 // actIssue: how many, at least 1

	// With actIssue and open, the generator may issue positions from pos up to limit
	// without asking the core while the clock reads opens to closes (Unix ns).
	open          bool
	limit         uint64
	opens, closes int64

	recalls uint64 // actIssue: of the cell, as the generator has read it when this was decided
}

// An attempt counts how much of the rollback chain one call has used up. A call that asks
// again starts with the first policy again, since that one may be able to serve by then.
type attempt struct {
	tries    int
	waited   time.Duration // under the policy history
	switched bool
	refusal  error // why the switch failed
	why      string
}

// reset puts the core under a grant. With ordered, all later ids sort after all
// earlier ones.
func (c *core) reset(g Grant, ordered bool) {
	floor := uint64(g.After+1) << c.layout.sequence
	if c.high > 0 {
		// The next tick, not the next position: within one tick ids sort by
		// worker first, and the new worker may be the smaller.
		c.behind = uint64(c.tickOf(c.high-1)+1) << c.layout.sequence
	}
	if ordered {
		floor = max(floor, c.behind)
	}
	carried := c.pos & mask(c.layout.sequence)
	if c.high == 0 && c.random != nil {
		carried = c.random() & mask(c.layout.sequence)
	}
	c.worker, c.before, c.floor, c.high, c.cur = g.Worker, c.tickOf(floor)-1, floor, 0, -1
	c.ceiling = 0
	c.extend(g.Through)
	c.pos = carried // tick 0, so below the floor's tick, or enter carries it into that tick
	if c.clock == ClockVirtual {
		c.pos = floor
		if c.start == StartCarry {
			c.pos |= carried
		}
	}
	if !ordered { // ids may sort before earlier ones, so earlier readings and ids no longer matter
		c.behind, c.seen, c.seenAt, c.drift = 0, -1, 0, false
		c.peak, c.peakAt = -1, 0
	}
	c.history.clear()
}

// extend raises the ceiling to the end of tick through; it never lowers it.
func (c *core) extend(through Tick) {
	through = min(max(through, -1), c.layout.MaxTick()) // below -1 the shift gives a huge number
	c.ceiling = max(c.ceiling, uint64(through+1)<<c.layout.sequence)
}

// last returns the last tick of the ids issued under the grant: the tick before its
// first if there are no ids.
func (c *core) last() Tick {
	if c.high == 0 {
		return c.before
	}
	return c.tickOf(c.high - 1)
}

// used returns the earliest time, in Unix ns, to which a steady clock may be set back. It is
// the latest of three: the last decision to issue, the grant's beginning, and the time from
// which the next position may be issued. Without the third, each look at the wall clock
// would set the clock back, and a call that waits for that time would wait forever.
// The next position is an argument, since callers may have moved it.
func (c *core) used(next uint64) int64 {
	used := c.layout.nanos(c.before + 1) // not the floor, which lies at the fence once the grant is revoked
	if c.seen >= 0 {
		used = max(used, c.seenAt)
	}
	if c.high > 0 { // without ids under this grant its beginning suffices
		used = max(used, c.reached(next))
	}
	return used
}

// reached returns the time, in Unix ns, from which a position may be issued: the start
// of its tick, less Ahead. It returns never if int64 cannot hold that.
func (c *core) reached(position uint64) int64 {
	begin := c.layout.nanos(c.tickOf(position))
	if begin == never {
		return never
	}
	return saturatingAdd(begin, -max(c.ahead, 0))
}

// never stands for a time in or after the year 2262, which no clock reading in Unix ns
// can show.
const never = math.MaxInt64

func (c *core) tickOf(position uint64) Tick    { return Tick(position >> c.layout.sequence) }
func (c *core) endOf(tick Tick) uint64         { return uint64(tick+1) << c.layout.sequence }
func (c *core) startOf(tick Tick) uint64       { return uint64(tick) << c.layout.sequence }
func (c *core) plusAhead(now int64) (at int64) { return saturatingAdd(now, max(c.ahead, 0)) }

func saturatingAdd(a, b int64) int64 {
	switch sum := a + b; {
	case b >= 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

func saturatingSub(a, b int64) int64 {
	if b == math.MinInt64 { // -b would overflow
		return saturatingAdd(saturatingAdd(a, math.MaxInt64), 1)
	}
	return saturatingAdd(a, -b)
}

// step decides about n ids at a reading of the clock in Unix ns.
func (c *core) step(now int64, n uint64, a *attempt) decision {
	if c.clock == ClockVirtual {
		return c.stepVirtual(now, n)
	}
	tick, ok := c.layout.tickAt(now)
	switch {
	case !ok:
		return c.exhausted()
	case c.seen < 0 && tick < 0:
		return decision{err: epochAhead(c.layout, now)}
	case tick < c.seen:
		return c.rolledBack(now, tick, n, a)
	}
	return c.serve(now, tick, n, a)
}

// epochAhead returns the error for a clock that reads a time before the epoch.
func epochAhead(l Layout, now int64) error {
	return &RangeError{
		What: "time of the clock", Value: stamp(time.Unix(0, now)), Min: stamp(l.Epoch()), Max: stamp(l.Time(l.MaxTick())),
		Where: "the times of the layout: set the clock, or choose an earlier epoch",
	}
}

func (c *core) exhausted() decision {
	return decision{err: &TimeExhaustedError{Layout: c.layout, End: c.layout.End()}}
}

// ended is the refusal to issue at or above the ceiling.
func (c *core) ended() decision {
	fence := c.tickOf(c.ceiling) - 1
	if fence >= c.layout.MaxTick() && !c.revoked {
		return c.exhausted()
	}
	return decision{err: &FenceError{Worker: c.worker, Tick: fence, Fence: c.layout.Time(fence), Revoked: c.revoked}}
}

// serve decides when the clock has not gone back.
func (c *core) serve(now int64, tick Tick, n uint64, a *attempt) decision {
	if c.history.kept() && tick < c.cur { // the policy ahead has moved past the clock
		return c.goOn(now, tick, c.cur, n, a)
	}
	pos, cur := c.pos, c.cur
	if c.history.kept() {
		if tick != c.cur {
			pos, cur = c.entry(tick), tick
		}
	} else if first := max(tick, c.tickOf(c.floor)); pos < c.startOf(first) {
		pos = c.enter(first)
	}
	pos = max(pos, c.floor)
	if pos >= c.ceiling {
		return c.ended()
	}
	limit := c.endOf(tick)
	if reach, ok := c.layout.tickAt(c.plusAhead(now)); !ok {
		limit = c.ceiling
	} else if reach > tick {
		limit = c.endOf(reach)
	}
	limit = min(limit, c.ceiling)
	if pos >= limit {
		if c.drift {
			return c.goOn(now, tick, c.tickOf(pos), n, a)
		}
		if c.high == 0 { // so that a step back is noticed even before the grant begins
			c.seen, c.seenAt = tick, now
		}
		if c.back(tick) {
			if d, ok := c.waitForUnused(now, tick, 0, a); ok {
				return d
			}
			return c.rolledBack(now, tick, n, a)
		}
		return decision{act: actWait, until: c.reached(pos)}
	}
	if c.history.kept() && cur != c.cur {
		c.history.record(c.cur, c.pos)
	}
	c.cur, c.seen, c.seenAt, c.drift = cur, tick, now, false
	d := c.issue(pos, limit, n)
	d.open, d.opens, d.closes = true, c.layout.nanos(tick), c.layout.nanos(tick+1)
	if tick == c.layout.MaxTick() {
		d.closes = saturatingAdd(d.opens, c.layout.unit)
	}
	return d
}

// errOutside means a bug in this file. It is checked because an id outside the grant may
// belong to another generator.
var errOutside = errors.New("firn: internal error: refused to issue an id outside the lease")

// issue takes up to n positions from pos, below limit.
func (c *core) issue(pos, limit, n uint64) decision {
	if pos < c.floor || limit > c.ceiling {
		return decision{err: errOutside}
	}
	count := min(n, limit-pos)
	c.pos = pos + count
	c.high = max(c.high, c.pos)
	return decision{act: actIssue, first: pos, count: count, limit: limit}
}

// enter returns the position at which an unused tick begins.
func (c *core) enter(tick Tick) uint64 {
	switch c.start {
	case StartZero:
		return c.startOf(tick)
	case StartRandom:
		return c.startOf(tick) + c.random()%c.below
	default:
		return c.startOf(tick) | c.pos&mask(c.layout.sequence)
	}
}

// entry returns the first unused position of a tick, according to the history. If
// the history does not know the tick, it returns the position above all used ones.
func (c *core) entry(tick Tick) uint64 {
	used, written, known := c.history.lookup(tick, c.highTick())
	switch {
	case !known:
		return max(c.high, c.startOf(tick))
	case written:
		return used
	default:
		return c.enter(tick)
	}
}

func (c *core) highTick() Tick {
	if c.high == 0 {
		return -1
	}
	return c.tickOf(c.high - 1)
}

// rolledBack decides when the clock reads a tick below the highest it has shown, or one that
// the policy history has accepted and that is used up.
func (c *core) rolledBack(now int64, tick Tick, n uint64, a *attempt) decision {
	if c.ahead > 0 { // Ahead hides a small step back
		pos := max(c.pos, c.floor)
		reach, _ := c.layout.tickAt(c.plusAhead(now))
		if limit := min(c.endOf(max(reach, -1)), c.ceiling); pos < limit {
			return c.issue(pos, limit, n)
		}
		if saturatingAdd(c.layout.nanos(c.seen), -c.ahead) < now && !c.drift {
			// Ahead is used up: wait, as without the step back.
			if pos >= c.ceiling {
				return c.ended()
			}
			return decision{act: actWait, until: c.reached(pos)}
		}
	}
	var fence decision
	for _, p := range c.chain {
		switch p.kind {
		case policyWait:
			caughtUp := c.layout.nanos(max(c.seen, c.peak))
			if saturatingSub(caughtUp, now) <= int64(p.max) && a.tries < p.tries {
				a.tries++
				return decision{act: actWait, until: caughtUp, tried: true}
			}
			a.why = fmt.Sprintf("%s could not serve after %d tries", p, a.tries)
			if a.tries < p.tries {
				a.why = p.String() + " waits for smaller steps only"
			}
		case policyHistory:
			d, ok := c.resume(now, tick, n, a)
			if ok {
				return d
			}
			a.why = p.String() + d.why
		case policyAhead:
			d, ok := c.countOn(tick, n)
			if ok {
				return d
			}
			fence, a.why = d, p.String()+" is used up"
		case policySwitch:
			switch {
			case a.refusal != nil:
				a.why = "switch: " + a.refusal.Error()
			case tick < 0:
				a.why = "switch: the clock is before the epoch, where no worker can issue ids"
			case !a.switched:
				a.switched = true
				return decision{act: actSwitch, from: tick}
			}
		}
	}
	if fence.err != nil { // the fence, not the clock, prevents ids
		return fence
	}
	last := c.seenAt
	if c.back(c.seen) {
		last = c.peakAt
	}
	return decision{err: &ClockBackError{
		By: time.Duration(saturatingSub(last, now)), Now: time.Unix(0, now).UTC(), Last: time.Unix(0, last).UTC(),
		Why: a.why, Switch: a.refusal,
	}}
}

// back reports whether a tick is before the time from which the clock went back when the policy
// history accepted that. Ticks up to that time may be used up, one after the other.
func (c *core) back(tick Tick) bool { return tick < c.peak }

// resume accepts the clock's earlier time and continues in the unused part of its tick, if the
// history knows that part; or it waits for the next tick that has one. If it returns false, the
// decision says why not.
func (c *core) resume(now int64, tick Tick, n uint64, a *attempt) (decision, bool) {
	beyond := decision{why: " does not reach back that far"}
	if tick < 0 || c.startOf(tick) < c.floor {
		return beyond, false
	}
	if tick != c.cur {
		c.history.record(c.cur, c.pos) // it is recorded again when the tick is left
		if _, _, known := c.history.lookup(tick, c.highTick()); !known {
			return beyond, false
		}
	}
	wait, ok := c.waitForUnused(now, tick, 0, a)
	if !ok {
		return wait, false
	}
	if c.seen > c.peak {
		c.peak, c.peakAt = c.seen, c.seenAt
	}
	if high := c.highTick(); high > c.peak { // of the policy ahead
		c.peak, c.peakAt = high, c.layout.nanos(high)
	}
	if tick != c.cur {
		c.pos, c.cur = c.entry(tick), tick
	}
	c.seen, c.seenAt, c.drift = tick, now, false
	if wait.until > now {
		return wait, true
	}
	return c.serve(now, tick, n, a), true
}

// waitForUnused waits until ids of the first tick from tick on that has an unused position may be
// issued, ahead ticks before the clock shows it. It returns false if the limit of the policy history
// does not allow that; then the decision says so.
func (c *core) waitForUnused(now int64, tick, ahead Tick, a *attempt) (decision, bool) {
	left := int64(c.chain.find(policyHistory).max - a.waited)
	last, _ := c.layout.tickAt(saturatingAdd(now, left))
	unused := c.unused(tick, last+ahead)
	until := c.layout.nanos(unused - ahead)
	if saturatingSub(until, now) > left {
		return decision{why: ": the ticks from " + stamp(c.layout.Time(tick)) + " on are used up for longer than it waits"}, false
	}
	return decision{act: actWait, until: until, full: true}, true
}

// unused returns the first tick from a tick on that has a position which the grant allows and the
// history knows as unused. If that is a tick after last, it may return an earlier one after last.
func (c *core) unused(tick, last Tick) Tick {
	high := c.highTick()
	for tick = max(tick, c.tickOf(c.floor)); tick <= min(last, high); tick++ {
		end := c.endOf(tick)
		if tick == c.cur {
			if c.pos < end {
				break
			}
			continue
		}
		until, written, known := c.history.lookup(tick, high)
		if known && (!written || until < end) {
			break
		}
	}
	return tick
}

// countOn ignores the clock and issues from the last position on, as far ahead of the
// clock as the policy ahead allows. If it returns false, the decision has the fence error
// if the fence is what prevents ids.
func (c *core) countOn(tick Tick, n uint64) (decision, bool) {
	most := tick + c.chain.find(policyAhead).ticks
	if most < tick || most > c.layout.MaxTick() { // an overflow, or past the last tick
		most = c.layout.MaxTick()
	}
	if most < 0 {
		return decision{}, false
	}
	pos, limit := max(c.pos, c.floor), c.endOf(most)
	if c.history.kept() {
		// One tick after the other, since each may be partly used.
		cur := c.cur
		if cur < 0 { // no ids under this grant yet
			cur = c.tickOf(c.floor)
			pos = max(c.entry(cur), c.floor)
		}
		for pos >= c.endOf(cur) {
			cur = max(cur+1, c.history.oldest(c.highTick()))
			if cur > most {
				return decision{}, false
			}
			pos = max(c.entry(cur), c.floor)
		}
		limit = min(limit, c.endOf(cur))
		if pos < min(limit, c.ceiling) && cur != c.cur {
			c.history.record(c.cur, c.pos)
			c.cur = cur
		}
	}
	if pos >= limit {
		return decision{}, false
	}
	if pos >= c.ceiling {
		return c.ended(), false
	}
	limit = min(limit, c.ceiling)
	c.drift = true
	return c.issue(pos, limit, n), true
}

// goOn counts on after the clock has caught up with its earlier readings, while ids are
// still ahead of it. Next is the tick of the next id.
func (c *core) goOn(now int64, tick, next Tick, n uint64, a *attempt) decision {
	if max(c.pos, c.floor) >= c.ceiling {
		return c.ended()
	}
	d, ok := c.countOn(tick, n)
	if d.err != nil {
		return d
	}
	c.seen, c.seenAt = tick, now // so that another step back is noticed
	switch {
	case ok:
		return d
	case !c.back(tick):
		return c.waitToCountOn(tick, next)
	}
	if d, ok = c.waitForUnused(now, next, c.chain.find(policyAhead).ticks, a); !ok {
		return c.rolledBack(now, tick, n, a)
	}
	d.until = max(d.until, c.layout.nanos(tick+1)) // at the layout's end
	return d
}

// waitToCountOn waits until the policy ahead allows a tick. If all allowed ticks are used
// up according to the history, it waits for the clock's next tick.
func (c *core) waitToCountOn(now, tick Tick) decision {
	return decision{act: actWait, until: c.layout.nanos(max(now+1, tick-c.chain.find(policyAhead).ticks))}
}

// stepVirtual decides for ClockVirtual: without a clock, or with one as a bound.
func (c *core) stepVirtual(now int64, n uint64) decision {
	pos := max(c.pos, c.floor)
	if pos >= c.ceiling {
		return c.ended()
	}
	limit := c.ceiling
	if c.ahead >= 0 {
		if reach, ok := c.layout.tickAt(c.plusAhead(now)); ok {
			limit = min(limit, c.endOf(max(reach, -1)))
		}
	}
	if pos >= limit {
		return decision{act: actWait, until: c.reached(pos)}
	}
	d := c.issue(pos, limit, n)
	d.open, d.opens, d.closes = true, math.MinInt64, math.MaxInt64
	return d
}
