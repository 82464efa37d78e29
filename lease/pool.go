package lease

import (
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

// What a newcomer does about a pool, before it claims a slot. Pure, as the rules are.

// An entrance is what a newcomer has to do before it may claim a slot: nothing, if it
// is the zero value; else write the pool's record, after a wait.
type entrance struct {
	write bool
	wait  time.Duration
	why   string // of the wait, for people
	poolRecord
}

// closed is the record of a pool that is new.
func (r *rules) closed(grace time.Duration, wall time.Time) poolRecord {
	return poolRecord{Layout: r.layout.String(), Made: wall.UTC(), Strict: durationOf(r.strict), Grace: durationOf(grace)}
}

// enter decides that from the pool as it was listed; found is false without a record, and
// waited is true if the record is the one by which this newcomer has just opened the pool.
func (r *rules) enter(p Pool, found, waited bool, grace time.Duration, now firn.Tick, here reading) (entrance, error) {
	if !found {
		record := r.closed(grace, here.wall)
		record.Open = r.trusting
		return entrance{write: true, poolRecord: record}, nil
	}
	record := p.record()
	if p.Layout != r.layout {
		return entrance{}, &PoolError{Pool: p.Name, Have: "layout " + p.Layout.String(), Want: r.layout.String()}
	}
	if p.Strict != r.strict && (p.Open || p.Strict != 0) { // a closed one is opened first: its holders are to be seen
		if err := r.mayChangeStrict(p, here.wall); err != nil {
			return entrance{}, err
		}
		record.Strict = durationOf(r.strict)
		return entrance{write: true, poolRecord: record}, nil
	}
	for _, s := range p.Slots {
		if r.beyond(s.Fence, now) {
			return entrance{}, fmt.Errorf("lease: the fence of worker %d lies at %s, further ahead than the strict wait of pool %q covers (%v): a holder has a longer window or a wrong clock; wait until then, or use another pool: %w",
				s.Worker, r.layout.Time(s.Fence).UTC().Format(time.RFC3339), p.Name, r.strict, ErrPool)
		}
	}
	switch {
	case p.Grace < grace:
		// Its holders may take longer to notice a loss than newcomers wait for so far.
		record.Grace = durationOf(grace)
		return entrance{write: true, poolRecord: record}, nil
	case p.life == nil: // to learn it
		return entrance{write: true, poolRecord: record}, nil
	case !p.Open:
		record.Open = true
		if tick, err := r.layout.Tick(here.there.Add(r.tolerance)); err == nil && !here.there.IsZero() {
			record.From = max(p.from, tick+1) // a tick for rounding
		}
		return entrance{write: true, wait: p.Grace, why: "the pool is new, or its store may have forgotten holders", poolRecord: record}, nil
	}
	if unreleased := p.unreleased(); unreleased > p.settled && !waited && !p.lives(now-r.ticks(2*r.tolerance)) {
		// It is closed first, and opened over exactly that: a store that is set back to the
		// same copy again, while this waits, is noticed.
		record.Settled, record.Open = unreleased, false
		return entrance{write: true, why: "nobody holds a worker, and some was never given back: the store may have been set back", poolRecord: record}, nil
	}
	return entrance{}, nil
}

// mayChangeStrict returns an error unless this process may make the pool as strict as it
// is: the first that has the setting turns it on, and nobody turns it off by joining.
// Those who hold workers by now know nothing of it: their windows may be longer.
func (r *rules) mayChangeStrict(p Pool, wall time.Time) error {
	want := "the strict wait " + r.strict.String()
	if p.Strict != 0 {
		return &PoolError{Pool: p.Name, Have: "the strict wait " + p.Strict.String(), Want: r.strict.String()}
	}
	n, last := 0, time.Time{}
	for _, s := range p.Slots {
		if !s.Until.After(wall) {
			continue
		}
		n++
		if s.Until.After(last) {
			last = s.Until
		}
	}
	if n > 0 {
		return &PoolError{Pool: p.Name, Want: want, Have: fmt.Sprintf("%d holders without a strict wait, until %s at the latest", n, last.Format(time.RFC3339))}
	}
	return nil
}

// unreleased returns the latest fence of the slots that were never given back.
func (p *Pool) unreleased() firn.Tick {
	latest := firn.Tick(-1)
	for _, s := range p.Slots {
		if !s.Free {
			latest = max(latest, s.Fence)
		}
	}
	return latest
}

// lives reports whether a fence lies at now or later: then somebody wrote this within a
// window of now. In a copy older than that none does, however many holders there are.
func (p *Pool) lives(now firn.Tick) bool {
	for _, s := range p.Slots {
		if s.Fence >= now && !s.Free { // ids of one given back may have run far ahead of any clock
			return true
		}
	}
	return false
}

// confirmedIn returns the record as it is to be, given the life of the store that
// confirmed it, and whether it is that already. A pool is open only in the life that it
// names; one that was just made learns which that is.
func (r *rules) confirmedIn(record poolRecord, life string) (poolRecord, bool) {
	if record.Life != nil && *record.Life == life {
		return record, true
	}
	record.Open = record.Open && record.Life == nil && r.trusting
	record.Life = &life
	return record, false
}
