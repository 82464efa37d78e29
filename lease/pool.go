package lease

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// What a newcomer does about a pool, and which slot it claims. Pure, as the rules are.

// closed is the record of a pool that is new.
func (r *rules) closed(grace time.Duration, wall time.Time) Pool {
	return Pool{
		Layout: r.layout, Made: wall.UTC(), Strict: Duration(r.strict),
		Grace: Duration(grace), Tolerance: Duration(r.tolerance),
	}
}

// agrees returns an error unless a pool has what all its members must have alike as another has it.
func (p *Pool) agrees(with Pool) error {
	switch {
	case p.Layout != with.Layout:
		return &PoolError{Pool: p.Name, Have: "layout " + p.Layout.String(), Want: with.Layout.String()}
	case p.Grace != with.Grace:
		return &PoolError{Pool: p.Name, Have: "a grace of " + p.Grace.String() + ", which follows from Look and Patience of SlotsConfig", Want: with.Grace.String()}
	case p.Tolerance != with.Tolerance:
		return &PoolError{Pool: p.Name, Have: "a tolerance of clocks of " + p.Tolerance.String(), Want: with.Tolerance.String()}
	}
	return nil
}

// enter decides what a newcomer must do before it may claim a slot: write the pool's record, if
// next is not nil, after a wait. P is the pool as listed; own says that this newcomer has just
// closed it as nobody seemed alive, or opened it again after that.
func (r *rules) enter(p Pool, own bool, grace time.Duration, now firn.Tick, here reading) (next *Pool, wait time.Duration, err error) {
	record := r.closed(grace, here.wall)
	next = &record
	if p.revision == 0 {
		next.Open = r.trusting
		return next, 0, nil
	}
	if err := p.agrees(record); err != nil {
		return nil, 0, err
	}
	record = p

	// One that is closed is opened first: its holders are to be seen.
	if p.Strict != Duration(r.strict) && (p.Open || p.Strict != 0) {
		next.Strict = Duration(r.strict)
		return next, 0, r.mayChangeStrict(p, here.wall)
	}
	for _, s := range p.Slots {
		if r.beyond(s.Fence, now) {
			return nil, 0, fmt.Errorf("lease: the fence of worker %d lies at %s, further ahead than the strict wait of pool %q covers (%v): a holder has a longer window or a wrong clock; wait until then, or use another pool: %w",
				s.Worker, r.layout.Time(s.Fence).UTC().Format(time.RFC3339), p.Name, r.strict, ErrPool)
		}
	}
	unreleased, nobody := r.unreleased(p, now)
	switch {
	case next.Life == nil:
		// It is written as it is, to learn the life.
	case !p.Open:
		// It is new, or its store may have forgotten holders.
		wait, next.Open = time.Duration(p.Grace), true
		if !here.there.IsZero() {
			next.From = max(next.From, tickOf(r.layout, here.there.Add(r.tolerance))+1) // a tick for rounding
		}
	case unreleased > next.Settled && nobody && !own:
		// All fences have passed, and some worker was never given back by its holder: the store
		// may have been set back. The pool is closed first, and
		// opened over exactly that, so that a second set back to the same copy is noticed.
		next.Settled, next.Open = unreleased, false
	default:
		return nil, 0, nil
	}
	return next, wait, nil
}

// mayChangeStrict returns an error unless this process may make the pool as strict as itself:
// the first with the setting turns it on, and nobody turns it off by joining. Present holders
// do not know of it: their windows may be longer. They hold what others may not claim yet.
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

// unreleased returns the latest fence of the slots that their holders never gave back, and whether
// nobody seems alive: if a fence lies ahead, somebody wrote it within a window; in a copy older than
// a window none does. A slot that its holder gave back tells nothing: its ids may have run far
// ahead of any clock. Nor does one that was taken back, before its fence has passed.
func (r *rules) unreleased(p Pool, now firn.Tick) (latest firn.Tick, nobody bool) {
	latest, nobody = -1, true
	for _, s := range p.Slots {
		passed := s.Fence < now-r.ticks(2*r.tolerance) // by any two clocks within the tolerance
		if !s.Free || s.Taken && passed {
			latest, nobody = max(latest, s.Fence), nobody && passed
		}
	}
	return latest, nobody
}

// confirmedIn returns the record as it should be, given the life of the store that confirmed
// it, and whether it is that already. A pool is open only in the life that it names; a new one
// learns its life.
func (r *rules) confirmedIn(record Pool, life string) (Pool, bool) {
	if record.Life != nil && *record.Life == life {
		return record, true
	}
	record.Open = record.Open && record.Life == nil && r.trusting
	record.Life = &life
	return record, false
}

// fewOldest is how many of the slots idle longest newcomers choose from at random, so that
// those who come together seldom want the same.
const fewOldest = 8

// reuseAbove is how many slots a pool may have before idle ones are preferred to workers
// never used. Without it a pool of millions of workers and short-lived holders would grow a
// slot a process, and every newcomer reads them all.
const reuseAbove = 4096

// choose picks the slot to claim. Ok is false when every worker is held at tick now.
func (r *rules) choose(p Pool, datacenter int64, now firn.Tick, random func() uint64) (chosen Slot, ok bool) {
	var used, idle []Slot
	for _, s := range p.Slots {
		if s.Datacenter != datacenter {
			continue
		}
		used = append(used, s)
		if r.idle(s, now) {
			idle = append(idle, s)
		}
	}
	neverUsed := p.Layout.MaxWorker() + 1 - int64(len(used))
	if neverUsed > 0 && (len(used) < reuseAbove || len(idle) == 0) {
		return p.slot(datacenter, nthUnused(used, int64(random()%uint64(neverUsed)))), true
	}
	if len(idle) == 0 {
		return Slot{}, false
	}
	slices.SortStableFunc(idle, func(a, b Slot) int { return cmp.Compare(a.Fence, b.Fence) })
	return idle[random()%uint64(min(fewOldest, len(idle)))], true
}

// nthUnused returns the n-th worker number, from 0, that no slot has; they are in order.
func nthUnused(used []Slot, n int64) int64 {
	for _, s := range used {
		if s.Worker > n {
			break
		}
		n++
	}
	return n
}

// nextIdle returns when the first of a datacenter's workers may be claimed.
func (r *rules) nextIdle(p Pool, datacenter int64) time.Time {
	var next time.Time
	for _, s := range p.Slots {
		if at := r.idleAt(s); s.Datacenter == datacenter && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// clockOfOthers returns the median of when the held slots were written, by their owners'
// clocks: by at least half of them it is later. Ok is false when fewer than three hold
// slots: one wrong clock must not keep the rest out.
func clockOfOthers(p Pool) (at time.Time, ok bool) {
	var times []time.Time
	for _, s := range p.Slots {
		if !s.Free {
			times = append(times, s.At)
		}
	}
	if len(times) < 3 {
		return time.Time{}, false
	}
	slices.SortFunc(times, time.Time.Compare)
	return times[(len(times)-1)/2], true
}
