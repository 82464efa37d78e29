package sim

import (
	"context"
	"math/rand/v2"
	"time"
)

// A machine is one process and its host, with its own clock. It is the [firn.TimeSource] of its
// processes, and their [turns.Scheduler].
type machine struct {
	w    *world
	id   int
	name string

	// The clock shows base plus the time since from, slightly faster or slower.
	base, from int64
	ppm        int64
	slewed     int64 // by how many ppm the wall clock is slower than the monotonic one
	mono       int64 // reading of the monotonic clock, with the same rate, at from
	asleep     int64 // the monotonic clock stands still until then
	slept      int64 // how long it has stood still in total

	frozen int64 // nothing runs here until then
	thawed *task // the task frozen in the middle of a step
	cut    int64 // the store is unreachable from here until then
	cutOff bool  // in a fork it is on the old primary's side
	hung   int64 // time of its latest hung request
	leg    int64 // asymmetry of a reading of the store's clock: extra time to ask (below zero) or to answer

	calm   int64  // end of the latest disturbance of its clock or of the machine
	most   int64  // greatest lead of its clock over the true time
	before moment // the latest step of its process

	walled bool  // without a lease: all its lives read the wall clock for each id, so it may go back
	shown  int64 // the latest time that its wall clock has shown
	// starting: without a lease the clock must not be behind when a life begins.
	starting bool

	next     *aim // the fault that strikes its next request of one kind; nil: none
	readings int  // it stands still after this many more clock readings; 0: it does not

	tasks []*task
	life  *life
	lives int
	made  int // ids
	proc  process
}

func newMachine(w *world, id int) *machine {
	m := &machine{w: w, id: id, name: string(rune('A' + id))}
	r := stream(w.Seed, uint64(streamFaults)<<32|uint64(id))
	m.base = noon.UnixNano() + w.store.main.clock + between(r, int64(w.plan.skew))
	if slow := int64(w.plan.slowLeg); slow > 0 {
		m.leg = pick(r, 0, slow, -slow)
		m.base -= m.leg / 10 * 9 // then it looks right to code that ignores how long the answer took
	}
	m.ppm = r.Int64N(2*w.plan.drift+1) - w.plan.drift
	if w.plan.regime == Alone { // only the wall clock separates its lives
		m.slewed = pick[int64](r, 0, 500, 20_000)
		m.walled = w.plan.spares || r.IntN(3) == 0
	}
	m.proc = newProcess(w.plan.process, m)
	return m
}

// between draws from minus most to plus most, the extremes often.
func between(r *rand.Rand, most int64) int64 {
	switch n := r.Int64N(2*most+1) - most; r.IntN(4) {
	case 0:
		return -most
	case 1:
		return most
	default:
		return n
	}
}

func (m *machine) scaled(d int64) int64 { return d + d/1_000_000*m.ppm + d%1_000_000*m.ppm/1_000_000 }

// advance moves the reference point of readings to the present.
func (m *machine) advance() {
	m.most = max(m.most, m.offset())
	m.base, m.mono = m.wall(), m.monotonic()
	m.from = m.w.now
}

func (m *machine) wall() int64 {
	d := m.scaled(m.w.now - m.from)
	return m.base + d - d/1_000_000*m.slewed - d%1_000_000*m.slewed/1_000_000
}

func (m *machine) monotonic() int64 {
	return m.mono + m.scaled(max(m.w.now-max(m.from, m.asleep), 0))
}

// Wall implements [firn.TimeSource].
func (m *machine) Wall() time.Time {
	m.tick()
	m.shown = max(m.shown, m.wall())
	return time.Unix(0, m.wall())
}

// Monotonic implements [firn.TimeSource].
func (m *machine) Monotonic() time.Duration {
	m.tick()
	return time.Duration(m.monotonic())
}

// tick makes a clock reading take time. Sometimes it takes longer: the process stands still before it
// acts on the reading, or, if it holds no lock, its other goroutines run first.
func (m *machine) tick() {
	w, t := m.w, m.w.running
	w.now += int64(w.latencies.Uint64() & 63)
	if t == nil {
		return
	}
	loose := t.loose
	t.loose = false
	aimed := m.readings == 1
	if m.readings > 0 {
		m.readings--
	}
	switch {
	case aimed || w.faults.strikes(atClock):
		w.faults.last = atClock
		d := w.faults.duration(maxPause)
		if aimed { // often just long enough to be noticed, and short
			d >>= w.latencies.IntN(12)
		}
		w.trace.say(m, "stands still for %v, having read its clock", time.Duration(d))
		m.freeze(d)
		m.thawed = t
		t.at(m.frozen)
		t.wait(context.Background(), nil)
		m.thawed = nil
	case loose && !w.quiet && w.latencies.Uint64()&15 == 0:
		t.at(w.now + w.latencies.Int64N(int64(5*time.Millisecond)))
		t.wait(context.Background(), nil)
	}
}

// Sleep implements [firn.TimeSource].
func (m *machine) Sleep(ctx context.Context, d time.Duration) error {
	t := m.w.running
	if d <= 0 {
		// On a real machine it would retry in a busy loop.
		m.w.oracle.find("spin", m, "it waits for %v", d)
		d = time.Millisecond
	}
	until := m.monotonic() + int64(d)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left := until - m.monotonic()
		if left <= 0 {
			return nil
		}
		t.at(m.w.now + left - left/1_000_000*m.ppm + 1 + m.w.latencies.Int64N(50_000))
		t.wait(ctx, nil)
	}
}

// AfterFunc implements what [firn.Config] requires for Lag.
func (m *machine) AfterFunc(d time.Duration, do func()) {
	until := m.monotonic() + int64(d)
	m.spawn(func() {
		for left := until - m.monotonic(); left > 0; left = until - m.monotonic() { // it stands still in between
			m.w.running.at(m.w.now + left - left/1_000_000*m.ppm + 1 + m.w.latencies.Int64N(50_000))
			m.w.running.wait(context.Background(), nil)
		}
		do()
	})
}

// Go implements [turns.Scheduler].
func (m *machine) Go(do func()) { m.spawn(do) }

// Wait implements [turns.Scheduler].
func (m *machine) Wait(ctx context.Context, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return nil
		default:
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.w.running.wait(ctx, done)
	}
}

// WithTimeout implements [turns.Scheduler].
func (m *machine) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(ctx)
	bounded := &timeout{Context: inner}
	until := m.monotonic() + int64(d)
	var look func()
	look = func() {
		switch left := until - m.monotonic(); {
		case inner.Err() != nil:
		case left > 0: // the machine stood still
			m.w.after(left+1, look)
		default:
			bounded.passed = true
			cancel()
			m.notice()
		}
	}
	m.w.after(int64(d)+1, look)
	return bounded, cancel
}

type timeout struct {
	context.Context
	passed bool
}

func (t *timeout) Err() error {
	if t.passed {
		return context.DeadlineExceeded
	}
	return t.Context.Err()
}

// freeze stops everything here for a time; clocks continue.
func (m *machine) freeze(d int64) {
	m.frozen = max(m.frozen, m.w.now+d)
	m.calm = max(m.calm, m.frozen)
}

// offset returns how far the clock is ahead of the true time.
func (m *machine) offset() int64 { return m.wall() - noon.UnixNano() - m.w.now }

// disturbed records that the clock was set.
func (m *machine) disturbed() {
	m.calm = max(m.calm, m.w.now)
	m.most = max(m.most, m.offset())
}

// suspend is freeze, but the monotonic clock stands still too.
func (m *machine) suspend(d int64) {
	m.advance()
	m.freeze(d)
	m.asleep = m.frozen
	m.slept += d
}

// stepClock sets the wall clock forward or back. A generator without a lease that counts with the
// monotonic clock is promised a clock that is not set back.
func (m *machine) stepClock(by int64) {
	if m.w.plan.regime == Alone && by < 0 && (!m.walled || m.starting) {
		return
	}
	m.advance()
	m.base += by
	m.disturbed()
}

// mend ends all faults of the machine.
func (m *machine) mend() {
	m.advance()
	if m.w.plan.regime != Alone { // it must not go back in that regime
		m.base = noon.UnixNano() + m.w.now
	}
	m.ppm, m.slewed = 0, 0
	m.cut, m.leg = 0, 0
	m.disturbed()
}
