package lease

import (
	"cmp"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// fewOldest is among how many of the slots idle longest newcomers choose at
// random, so that those who come together seldom want the same.
const fewOldest = 8

// reuseAbove is how many slots a pool may have before idle ones are used again
// in preference to workers never used. Below it the longest idle are the never
// used; above, a pool of millions of workers and short-lived holders would
// grow a slot a process, and every newcomer reads them all.
const reuseAbove = 4096

// choose picks the slot to claim: pure, so that it can be checked by itself. Ok is false
// when every worker is held at tick now.
func choose(p Pool, datacenter int64, now firn.Tick, random func() uint64) (chosen Slot, ok bool) {
	var used, idle []Slot
	for _, s := range p.Slots {
		if s.Datacenter != datacenter {
			continue
		}
		used = append(used, s)
		if s.Fence < now {
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

// nextFree returns when the first of a datacenter's slots is free: when the tick of
// its fence has ended.
func nextFree(p Pool, datacenter int64) time.Time {
	var next time.Time
	for _, s := range p.Slots {
		if s.Datacenter == datacenter && (next.IsZero() || s.Until.Before(next)) {
			next = s.Until
		}
	}
	return next
}

// clockOfOthers returns the median of when the held slots were written, by
// their owners' clocks: at least half of the others say that it is later than
// that. Ok is false when fewer than three hold slots: one wrong clock must not
// keep the rest out.
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
