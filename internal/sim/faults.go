package sim

import (
	"math/rand/v2"
	"time"
)

// A kind is a kind of fault.
type kind int

const (
	backStep kind = iota
	forwardStep
	hourStep
	leap
	suspend
	pause
	atClock
	crash
	leave
	cutOff
	outage
	slow
	hang
	lostRequest
	lostAnswer
	refused
	stale
	echo        // a request arrives again, later
	unlink      // the replica is unreachable: nothing is confirmed
	failover    // the replica takes over, and the primary is gone
	fork        // the replica takes over, and the primary continues for a while
	rebirth     // the store begins a new life without losing anything
	unconfirmed // a write is applied and answered with an error
	misreport   // a write is applied and answered with a conflict
	wipe
	restore
	evict
	takeBack
	kinds
)

var kindNames = [kinds]string{
	"back-step", "forward-step", "hour-step", "leap", "suspend", "pause", "pause-at-clock", "crash", "leave", "cut-off",
	"outage", "slow", "hang", "lost-request", "lost-answer", "refused", "stale", "echo",
	"unlink", "failover", "fork", "rebirth", "unconfirmed", "misreport",
	"wipe", "restore", "evict", "take-back",
}

func (k kind) String() string { return kindNames[k] }

// Faults returns the names of all kinds of faults.
func Faults() []string { return kindNames[:] }

// byStep are the faults that strike a request or a clock reading with some probability; the others
// strike after some time.
var byStep = map[kind]bool{
	atClock: true, slow: true, hang: true, lostRequest: true, lostAnswer: true, refused: true, stale: true,
	echo: true, unconfirmed: true, misreport: true,
}

// faults makes faults happen. Each has a number, so that a replay can leave single ones out.
type faults struct {
	w        *world
	count    int
	kinds    [kinds]int
	strike   [kinds]*rand.Rand // one stream each: leaving one out does not affect the others
	detail   [kinds]*rand.Rand
	last     kind
	at       int64 // time of the latest fault
	moments  [moments]int
	aimedKey string // the next key to lose
	// claimedAt is the time of the latest claim.
	claimedAt int64
}

func (f *faults) begin(w *world) {
	f.w = w
	for k := range kinds {
		f.strike[k] = stream(w.Seed+w.plan.again, streamFaults<<8|uint64(k))
		f.detail[k] = stream(w.Seed+w.plan.again, streamFaults<<16|uint64(k))
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
			f.happen(k, f.w.machines[f.detail[k].IntN(len(f.w.machines))])
		}
		f.schedule(k)
	})
}

// strikes reports whether a fault strikes this request or clock reading.
func (f *faults) strikes(k kind) bool {
	if f.w == nil || f.w.plan.often[k] == 0 || f.w.quiet {
		return false
	}
	return f.strike[k].Uint64()&0xffff < f.w.plan.often[k] && f.next(k)
}

// next numbers a fault and reports whether it happens.
func (f *faults) next(k kind) bool {
	f.count++
	f.last, f.at = k, f.w.now
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

// upTo draws uniformly.
func (f *faults) upTo(most time.Duration) time.Duration {
	return time.Duration(f.detail[f.last].Int64N(int64(most) + 1))
}

func (f *faults) happen(k kind, m *machine) {
	w := f.w
	r := f.detail[k]
	switch k {
	case backStep:
		f.step(m, -f.upTo(pick(r, 5*time.Millisecond, time.Second, 20*time.Second)))
	case forwardStep:
		f.step(m, f.upTo(pick(r, 5*time.Millisecond, time.Second, 20*time.Second)))
	case hourStep:
		f.step(m, pick(r, -time.Hour, time.Hour))
	case leap:
		f.step(m, time.Duration(pick(r, 1, 3))*365*24*time.Hour)
		// An operator notices.
		w.after(f.duration(5*time.Minute), func() {
			m.advance()
			m.base = noon.UnixNano() + w.now
			m.disturbed()
			w.trace.say(m, "its clock is corrected")
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
		if w.plan.duel { // long enough for the fence to pass
			d += int64(w.plan.window)
		}
		w.trace.say(m, "is cut off from the store for %v", time.Duration(d))
		m.cut = max(m.cut, w.now+d)
	case takeBack:
		w.oracle.taken++
		w.store.operator(r)
	default:
		w.store.suffer(k, r)
		f.arrive(r)
	}
}

// arrive starts newcomers while holders may not have noticed yet what the store has lost.
func (f *faults) arrive(r *rand.Rand) {
	p := &f.w.plan
	if p.late == 0 {
		return
	}
	n := r.IntN(3)
	if p.duel {
		n = 1
	}
	for ; p.late > 0 && n > 0; n-- {
		m := f.w.machines[p.machines-p.late]
		p.late--
		within := pick(r, 4*p.latency, p.slowestLook())
		if p.duel && p.layout.MaxWorker() == 0 { // before the holder looks
			within = 4 * p.latency
		}
		f.w.after(r.Int64N(int64(within)), func() { m.begin() })
	}
}

// step sets a clock. In a strict pool that seldom exceeds the tolerance: a clock that is always
// refused tests nothing.
func (f *faults) step(m *machine, by time.Duration) {
	w := f.w
	if strict := w.plan.regime == Strict || w.plan.regime == Unprotected; strict && by.Abs() < time.Hour {
		most := int64(w.plan.skew)
		offset := m.offset() + int64(by) - w.store.main.clock
		by += time.Duration(min(max(offset, -most), most) - offset)
	}
	w.trace.say(m, "its clock is set by %v", by)
	m.stepClock(int64(by))
}
