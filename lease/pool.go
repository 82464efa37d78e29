package lease

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// What a newcomer does about a pool, and which slot it claims. Pure, like the other rules.

// closed returns the record of a new pool.
func (r *rules) closed(wall time.Time) Pool {
	return Pool{
		Layout: r.layout, Made: wall.UTC(), Strict: Duration(r.strict),
		Grace: Duration(r.grace), Tolerance: Duration(r.tolerance),
	}
}

// agrees returns an error unless two records agree on the settings that all members must share.
func (p *Pool) agrees(with Pool) error {
	switch {
	case p.Layout != with.Layout:
		return &PoolError{Pool: p.Name, Have: "layout " + p.Layout.String(), Want: with.Layout.String()}
	case p.Grace != with.Grace:
		return &PoolError{Pool: p.Name, Have: "a grace of " + p.Grace.String() + ", which follows from Look", Want: with.Grace.String()}
	case p.Tolerance != with.Tolerance:
		return &PoolError{Pool: p.Name, Have: "a tolerance of clocks of " + p.Tolerance.String(), Want: with.Tolerance.String()}
	}
	return nil
}

// enter decides what a newcomer must do before it may claim a slot: if next is not nil, wait and then
// write it as the record of p, the pool as listed. Own: this newcomer has just closed the pool because
// no holder seemed alive, or opened it again after that.
func (r *rules) enter(p Pool, own bool, now firn.Tick, here reading) (next *Pool, wait time.Duration, err error) {
	record := r.closed(here.wall)
	next = &record
	if p.revision == 0 {
		next.Open = r.trusting
		return next, 0, nil
	}
	if err := p.agrees(record); err != nil {
		return nil, 0, err
	}
	record = p

	// A closed pool is opened first, so that its holders become visible.
	if p.Strict != Duration(r.strict) && (p.Open || p.Strict != 0) {
		next.Strict = Duration(r.strict)
		return next, 0, r.mayChangeStrict(p, here.wall)
	}
	for _, s := range p.Slots {
		if r.beyond(s.Fence, now) {
			return nil, 0, fmt.Errorf("lease: the fence of worker %d lies at %s, further ahead than the strict wait of pool %q covers (%v): a holder has a longer window or a wrong clock; wait until then, or use another pool: %w",
				s.Worker, r.layout.Time(s.Fence).UTC().Format(time.RFC3339), p.Name, r.strict, errFar)
		}
	}
	unreleased, allPassed := r.unreleased(p, now)
	switch {
	case next.Life == nil:
		// Write it unchanged, to learn the life.
	case !p.Open:
		// The pool is new, or its store may have forgotten holders.
		wait, next.Open = time.Duration(p.Grace), true
		if !here.there.IsZero() {
			next.From = max(next.From, tickOf(r.layout, here.there.Add(r.tolerance))+1) // a tick for rounding
		}
	case unreleased > next.Settled && allPassed && !own:
		// All fences have passed, and some holder never released its worker: the store may have been
		// set back. Close the pool, then open it over exactly that revision: a second return to the
		// same copy is then noticed.
		next.Settled, next.Open = unreleased, false
	default:
		return nil, 0, nil
	}
	return next, wait, nil
}

// mayChangeStrict returns an error unless this process may give the pool its own strict wait. The first
// process with the setting turns it on, while no slot is held: holders do not know the setting, and may
// have longer windows. Joining never turns it off. A slot counts as held until it may be claimed.
func (r *rules) mayChangeStrict(p Pool, wall time.Time) error {
	if p.Strict != 0 {
		return &PoolError{Pool: p.Name, Have: "the strict wait " + p.Strict.String(), Want: r.strict.String()}
	}
	n, last := 0, wall
	for _, s := range p.Slots {
		at := r.idleAt(s)
		if at.After(wall) {
			n++
		}
		if at.After(last) {
			last = at
		}
	}
	if n > 0 {
		return &PoolError{Pool: p.Name, Want: "the strict wait " + r.strict.String(), Have: fmt.Sprintf("%d holders without a strict wait, until %s at the latest", n, last.Format(time.RFC3339))}
	}
	return nil
}

// unreleased returns the latest fence of the slots that their holders never released, and whether all
// these fences have passed. A fence ahead was written within the last window; a copy older than a
// window has no such fence. A slot that its holder released proves nothing: its ids may have run far
// ahead of any clock. Nor does a slot that was taken back, before its fence has passed.
func (r *rules) unreleased(p Pool, now firn.Tick) (latest firn.Tick, allPassed bool) {
	latest, allPassed = -1, true
	for _, s := range p.Slots {
		passed := s.Fence < now-r.ticks(2*r.tolerance) // by any two clocks within the tolerance
		if !s.Free || s.Taken && passed {
			latest, allPassed = max(latest, s.Fence), allPassed && passed
		}
	}
	return latest, allPassed
}

// confirmedIn returns what the record should be, given the life of the store that confirmed it, and
// whether it is right already. A pool is open only in the life that it names.
func (r *rules) confirmedIn(record Pool, life string) (Pool, bool) {
	if record.Life != nil && *record.Life == life {
		return record, true
	}
	record.Open = record.Open && record.Life == nil && r.trusting
	record.Life = &life
	return record, false
}

// fewOldest: newcomers choose at random from this many slots idle longest, and so seldom the same.
const fewOldest = 8

// reuseAbove is the number of slots from which idle slots are preferred to workers never used. Otherwise
// each short-lived process would add one, and newcomers would read more and more slots. Of a part, it is
// the part's share of this number.
const reuseAbove = 4096

// choose picks the slot to claim. Ok is false when every worker is held at the time of the ask. An embedded store
// reads and writes a pool as a whole, for each command that makes one id, so there the first choice is a worker that
// its holder released. Others that are idle may only look so to a clock that is ahead.
func (r *rules) choose(p Pool, datacenter int64, ask Ask, random func() uint64) (chosen Slot, ok bool) {
	var used, idle, released []Slot
	for _, s := range p.Slots {
		if s.Datacenter != datacenter {
			continue
		}
		used = append(used, s)
		if r.idle(s, ask.Now) && (p.part.whole() || r.rested(s, ask)) {
			idle = append(idle, s)
			if s.Free && !s.Taken {
				released = append(released, s)
			}
		}
	}
	if r.trusting && len(released) > 0 {
		return released[random()%uint64(len(released))], true
	}
	first, n := p.part.workers(p.Layout)
	unused := n - int64(len(used))
	if unused > 0 && (int64(len(used)) < reuseAbove*n/(p.Layout.MaxWorker()+1) || len(idle) == 0) {
		return p.slot(datacenter, nthUnused(used, first+int64(random()%uint64(unused)))), true
	}
	if len(idle) == 0 {
		return Slot{}, false
	}
	slices.SortStableFunc(idle, func(a, b Slot) int { return cmp.Compare(a.Fence, b.Fence) })
	return idle[random()%uint64(min(fewOldest, len(idle)))], true
}

// nthUnused returns the worker number n, or as many later as slots up to there have; used is in order.
func nthUnused(used []Slot, n int64) int64 {
	for _, s := range used {
		if s.Worker > n {
			break
		}
		n++
	}
	return n
}

// nextIdle returns when the first worker of a datacenter may be claimed.
func (r *rules) nextIdle(p Pool, datacenter int64) time.Time {
	var next time.Time
	for _, s := range p.Slots {
		if at := r.idleAt(s); s.Datacenter == datacenter && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// clockOfOthers returns the median, over hosts, of when held slots were written: at least half of these clocks showed that
// or later. Of one host the earliest counts, since holders that crashed count too: a clock that was ahead for
// a while must not keep newcomers out. Nor must a single wrong one, so ok is false for fewer than fewHeld hosts. Slots
// whose fence has passed do not count: a newcomer cannot be behind those, but they would hide the clocks of later holders.
func clockOfOthers(p Pool, now firn.Tick) (at time.Time, ok bool) {
	earliest := map[string]time.Time{}
	for _, s := range p.Slots {
		if before, seen := earliest[s.Host]; !s.Free && s.Fence >= now && (!seen || s.At.Before(before)) {
			earliest[s.Host] = s.At
		}
	}
	if len(earliest) < fewHeld {
		return time.Time{}, false
	}
	times := slices.SortedFunc(maps.Values(earliest), time.Time.Compare)
	return times[(len(times)-1)/2], true
}
