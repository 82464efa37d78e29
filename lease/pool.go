package lease

import (
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

// What a newcomer does about a pool, before it claims a slot. Pure, as the rules are.

// closed is the record of a pool that is new.
func (r *rules) closed(grace time.Duration, wall time.Time) Pool {
	return Pool{Layout: r.layout, Made: wall.UTC(), Strict: Duration(r.strict), Grace: Duration(grace)}
}

// enter decides what a newcomer has to do before it may claim a slot: write the pool's
// record, if that is not nil, after a wait. It is decided from the pool as it was listed; own is
// true if this newcomer has just closed it as nobody seemed alive, or opened it again after that.
func (r *rules) enter(p Pool, own bool, grace time.Duration, now firn.Tick, here reading) (next *Pool, wait time.Duration, err error) {
	if p.revision == 0 {
		record := r.closed(grace, here.wall)
		record.Open = r.trusting
		return &record, 0, nil
	}
	if p.Layout != r.layout {
		return nil, 0, &PoolError{Pool: p.Name, Have: "layout " + p.Layout.String(), Want: r.layout.String()}
	}
	record := p
	next = &record

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
	unreleased := p.unreleased()
	switch {
	case p.Grace < Duration(grace):
		// Its holders may take longer to notice a loss than newcomers wait for so far.
		next.Grace = Duration(grace)
	case next.Life == nil:
		// It is written as it is, to learn the life.
	case !p.Open:
		// It is new, or its store may have forgotten holders.
		wait, next.Open = time.Duration(p.Grace), true
		if !here.there.IsZero() {
			next.From = max(next.From, tickOf(r.layout, here.there.Add(r.tolerance))+1) // a tick for rounding
		}
	case unreleased > next.Settled && unreleased < now-r.ticks(2*r.tolerance) && !own:
		// All fences have passed, by any two clocks within the tolerance, and some worker was
		// never given back: the store may have been set back. The pool is closed first, and
		// opened over exactly that: a store that is set back to the same copy again, while this
		// waits, is noticed.
		next.Settled, next.Open = unreleased, false
	default:
		return nil, 0, nil
	}
	return next, wait, nil
}

// mayChangeStrict returns an error unless this process may make the pool as strict as it
// is: the first that has the setting turns it on, and nobody turns it off by joining.
// Those who hold workers by now know nothing of it: their windows may be longer.
func (r *rules) mayChangeStrict(p Pool, wall time.Time) error {
	want := "the strict wait " + r.strict.String()
	if p.Strict != 0 {
		return &PoolError{Pool: p.Name, Have: "the strict wait " + p.Strict.String(), Want: r.strict.String()}
	}
	n, last := 0, wall
	for _, s := range p.Slots {
		if s.Until.After(wall) {
			n++
		}
		if s.Until.After(last) {
			last = s.Until
		}
	}
	if n > 0 {
		return &PoolError{Pool: p.Name, Want: want, Have: fmt.Sprintf("%d holders without a strict wait, until %s at the latest", n, last.Format(time.RFC3339))}
	}
	return nil
}

// unreleased returns the latest fence of the slots that were never given back. Where it lies
// ahead, somebody wrote it within a window; in a copy older than that it does not, however
// many holders there are. Ids of a slot that was given back may have run far ahead of any clock.
func (p *Pool) unreleased() firn.Tick {
	latest := firn.Tick(-1)
	for _, s := range p.Slots {
		if !s.Free {
			latest = max(latest, s.Fence)
		}
	}
	return latest
}

// confirmedIn returns the record as it is to be, given the life of the store that
// confirmed it, and whether it is that already. A pool is open only in the life that it
// names; one that was just made learns which that is.
func (r *rules) confirmedIn(record Pool, life string) (Pool, bool) {
	if record.Life != nil && *record.Life == life {
		return record, true
	}
	record.Open = record.Open && record.Life == nil && r.trusting
	record.Life = &life
	return record, false
}
