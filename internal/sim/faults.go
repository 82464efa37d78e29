package sim

import (
	"math/rand/v2"
	"time"
)

// faults has them happen. Each has a number, so that single ones can be left out
// of a history that is played again.
type faults struct {
	w      *world
	count  int
	kinds  [kinds]int
	strike [kinds]*rand.Rand // one stream each: leaving one out leaves the others alone
	detail [kinds]*rand.Rand
	last   kind
}

func (f *faults) begin(w *world) {
	f.w = w
	for k := range kinds {
		f.strike[k] = stream(w.Seed, streamFaults<<8|uint64(k))
		f.detail[k] = stream(w.Seed, streamFaults<<16|uint64(k))
		if w.plan.mean[k] > 0 {
			f.schedule(k)
		}
	}
}

func (f *faults) schedule(k kind) {
	f.w.after(seldom(f.strike[k], f.w.plan.mean[k]), func() {
		if f.w.quiet {
			return
		}
		if f.next(k) {
			f.happen(k)
		}
		f.schedule(k)
	})
}

// strikes says whether a fault strikes this request or clock reading.
func (f *faults) strikes(k kind) bool {
	if f.w == nil || f.w.quiet || f.w.plan.often[k] == 0 {
		return false
	}
	return f.strike[k].Uint64()&0xffff < f.w.plan.often[k] && f.next(k)
}

// next numbers a fault and says whether it is to happen.
func (f *faults) next(k kind) bool {
	f.count++
	f.last = k
	if f.w.Skip[f.count] {
		return false
	}
	f.kinds[k]++
	return true
}

func (f *faults) happened() int {
	n := 0
	for _, each := range f.kinds {
		n += each
	}
	return n
}

// duration draws how long the latest fault lasts: mostly short.
func (f *faults) duration(most time.Duration) int64 {
	return min(seldom(f.detail[f.last], most/8), int64(most))
}

// upTo draws evenly.
func (f *faults) upTo(most time.Duration) time.Duration {
	return time.Duration(f.detail[f.last].Int64N(int64(most) + 1))
}

func (f *faults) happen(k kind) {
	w := f.w
	r := f.detail[k]
	m := w.machines[r.IntN(len(w.machines))]
	switch k {
	case backStep:
		f.step(m, -f.upTo(pick(r, 5*time.Millisecond, time.Second, 20*time.Second)))
	case forwardStep:
		f.step(m, f.upTo(pick(r, 5*time.Millisecond, time.Second, 20*time.Second)))
	case hourStep:
		f.step(m, pick(r, -time.Hour, time.Hour))
	case leap:
		f.step(m, time.Duration(pick(r, 1, 3))*365*24*time.Hour)
		// Somebody notices.
		w.after(f.duration(5*time.Minute), func() {
			m.advance()
			m.base = noon.UnixNano() + w.now
			w.trace.say(m, "its clock is put right")
		})
	case suspend:
		d := f.duration(maxPause)
		w.trace.say(m, "is suspended for %v", time.Duration(d))
		m.suspend(d)
	case pause:
		d := f.duration(maxPause)
		w.trace.say(m, "is stopped for %v", time.Duration(d))
		m.freeze(d)
	case crash:
		m.crash(f.duration(time.Minute), r.IntN(2) == 0)
	case leave:
		w.trace.say(m, "is asked to leave")
		m.retire()
		w.after(f.duration(time.Minute), func() { m.begin() })
	case cutOff:
		d := f.duration(maxPause)
		w.trace.say(m, "is cut off from the store for %v", time.Duration(d))
		m.cut = max(m.cut, w.now+d)
	case outage:
		d := f.duration(maxPause)
		w.trace.say(nil, "the store is away for %v", time.Duration(d))
		w.store.down = max(w.store.down, w.now+d)
	case wipe:
		if r.IntN(3) == 0 {
			w.store.ambush = true
			return
		}
		w.trace.say(nil, "the store is wiped")
		w.store.setTo(nil)
	case restore:
		w.store.restore(f.duration(5 * time.Minute))
	case evict:
		w.store.evict(r)
	case takeBack:
		w.store.operator(r)
	}
}

// step sets a clock, in a strict pool within what it tolerates.
func (f *faults) step(m *machine, by time.Duration) {
	w := f.w
	if w.plan.regime == Strict || w.plan.regime == Unprotected {
		most := int64(w.plan.tolerance / 4)
		offset := m.wall() + int64(by) - noon.UnixNano() - w.now
		by += time.Duration(min(max(offset, -most), most) - offset)
	}
	w.trace.say(m, "its clock is set by %v", by)
	m.stepClock(int64(by))
}
