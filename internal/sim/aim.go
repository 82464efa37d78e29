package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A moment is a step of a protocol, as seen by the store and the clocks.
type moment int

const (
	other     moment = iota
	listed           // the pool was read
	clockRead        // the store's clock was read
	looked           // a slot was read
	poolMade         // the record of a pool was created, or re-created
	claimed          // a slot was taken that was free or had another holder
	renewed          // a holder wrote its slot
	released         // a slot was given back
	readCount        // a counter was read
	counted          // a counter was written
	begun            // a process has begun
	moments
)

var momentNames = [moments]string{
	"other", "list", "clock", "look", "pool", "claim", "renewal", "release", "read of a counter", "write of a counter", "start",
}

// protocol lists the moments to aim at, the most important ones repeatedly.
var protocol = []moment{
	listed, clockRead, looked, poolMade, claimed, claimed, claimed, renewed, renewed, renewed, released,
}

// An aim is a fault that strikes at the nth occurrence of a moment.
type aim struct {
	fault  kind
	at     moment
	count  int // from 1
	delay  time.Duration
	before bool // it strikes before the request is executed; otherwise after that, and before the answer
	self   bool // it strikes the process at this moment; otherwise any process
	every  bool // it strikes at every nth occurrence
	then   *aim // it strikes the same process next, at the first occurrence of its moment
}

func (a aim) String() string {
	when, who := "after", "any"
	if a.before {
		when = "before"
	}
	if a.self {
		who = "its"
	}
	if a.every {
		when += " every"
	}
	text := fmt.Sprintf("%v %v %s %s %d (%s process)", a.fault, a.delay, when, momentNames[a.at], a.count, who)
	if a.then != nil {
		text += ", then " + a.then.String()
	}
	return text
}

func (p *plan) drawAims(r *rand.Rand, row *regime) {
	if len(row.faults) == 0 {
		return
	}
	if len(row.pairs) > 0 && (p.regime == Reasserted || r.IntN(2) == 0) {
		p.drawPair(r, row)
	}
	if p.duel && r.IntN(2) == 0 {
		return
	}
	for range r.IntN(4) {
		p.aims = append(p.aims, p.drawAim(r, row.faults))
	}
}

// drawPair draws two faults that together test a regime's promise: the first strikes the store or the process,
// the second the process, at the same moment or when it matters.
func (p *plan) drawPair(r *rand.Rand, row *regime) {
	pair := row.pairs[r.IntN(len(row.pairs))]
	if !slices.Contains(row.faults, pair[0]) || !slices.Contains(row.faults, pair[1]) {
		return
	}
	a := p.drawAim(r, row.faults)
	a.every, a.self = r.IntN(2) == 0, true
	b := a
	a.fault, b.fault, b.delay = pair[0], pair[1], p.aimDelay(r)
	once := func(at moment, before bool, count int) {
		a.at, a.before, a.every, a.count = at, before, false, count
		b.at, b.before, b.every, b.count = at, before, false, count
	}
	switch {
	case pair[1] == hang:
		// The look after the loss is as late as newcomers expect, and hangs for as long as a client may wait.
		a.at, a.before, a.delay, a.every = looked, false, 0, false
		a.then = &aim{fault: hang, at: looked, count: 1, before: true, self: true}
		p.patience = longestPatience
		p.often[hang] = 0 // a process is spared after a request that hung
		a.count = 1 + r.IntN(4)
		if pair[0] == restore {
			a.count += 20 // there is an old copy; and a newcomer comes between the looks of two holders
			p.makeDuel(r, 2, 1)
		} else {
			p.makeDuel(r, 1, 1)
			p.window = 30 * time.Second // the fence does not stop the holder before the grace is over
		}
		p.aims = append(p.aims, a)
		return
	case pair[0] == lostRequest: // a renewal that its process may take for done
		p.makeDuel(r, 1, 0)
		p.machines++ // it waits for the fence, which passes before the holder reaches the store again
		once(renewed, true, 1+r.IntN(2))
		b.delay = 0
	case pair[0] == hourStep && pair[1] == wipe && r.IntN(2) == 0:
		// The loss comes while a renewal is due and refused for the clock, long before the fence.
		p.makeDuel(r, 1, 1)
		p.window, p.think, p.clock, p.never[hourStep] = time.Minute, time.Second, true, false
		once(claimed, false, 1)
		a.delay = 2 * time.Second
		b.delay = p.window/2 + time.Duration(r.Int64N(int64(p.window/4)))
	case pair[0] == fork && slices.Contains(losses, pair[1]):
		// A claim waits on the old side, and a newcomer takes its worker on the other.
		p.duel, p.machines, p.late = true, 2, 1
		p.layout = layoutOf(pick(r, duelLayouts[0]...))
		p.setStrict(r)
		p.replicated, p.async = true, false
		once(claimed, false, 1)
		a.delay = time.Duration(1 + r.Int64N(int64(p.window/4)))
		b.delay = a.delay + time.Duration(r.Int64N(int64(p.window/2)))
	case slices.Contains(clockFaults, pair[0]) && slices.Contains(losses, pair[1]):
		// The clock alone is harmless until the next renewal.
		b.delay = p.window/4 + time.Duration(r.Int64N(int64(p.window)))
	case slices.Contains(losses, pair[0]) && slices.Contains(losses, pair[1]):
		b.delay = time.Duration(r.Int64N(int64(p.grace()))) // while newcomers wait
	}
	p.aims = append(p.aims, a, b)
}

func (p *plan) drawAim(r *rand.Rand, faults []kind) aim {
	a := aim{
		fault: faults[r.IntN(len(faults))], count: 1 + int(float64(16)*r.Float64()*r.Float64()),
		before: r.IntN(2) == 0, self: r.IntN(2) == 0, delay: p.aimDelay(r),
	}
	if n := len(p.aims); n > 0 && r.IntN(2) == 0 { // two faults at one moment
		last := p.aims[n-1]
		a.at, a.count, a.before = last.at, last.count, last.before
		return a
	}
	switch p.process {
	case "counting":
		a.at = pick(r, readCount, counted, counted)
	case "firn":
		a.at = pick(r, protocol...)
	default:
		a.at, a.before, a.self = begun, true, true
		if k := pick(r, atClock, crash); r.IntN(2) == 0 && slices.Contains(faults, k) {
			a.fault = k // the relevant faults while a generator is made
		}
	}
	return a
}

// aimDelay is zero, or a part of one of the protocol's waits.
func (p *plan) aimDelay(r *rand.Rand) time.Duration {
	switch r.IntN(4) {
	case 0:
		return time.Duration(r.Int64N(int64(4*p.latency) + 1))
	case 1:
		return time.Duration(r.Int64N(int64(p.window) + 1)).Round(time.Millisecond)
	default:
		return 0
	}
}

// momentOf returns a request's step of the protocol.
func momentOf(s *side, op, key string, value []byte) moment {
	switch {
	case op == "clock":
		return clockRead
	case op == "list":
		return listed
	case strings.HasPrefix(key, "firn/"+pool+"/slot/"):
		if op == "get" {
			return looked
		}
		return slotWrite(s, key, value)
	case strings.HasPrefix(key, "firn/"+pool+"/"):
		return poolMade
	case op == "get":
		return readCount
	default:
		return counted
	}
}

// slotWrite distinguishes the writes of a slot.
func slotWrite(s *side, key string, value []byte) moment {
	switch {
	case bytes.Contains(value, []byte(`"free":true`)):
		return released
	default:
		i, ok := find(s.entries, key)
		if ok && bytes.Equal(ownerOf(s.entries[i].Value), ownerOf(value)) {
			return renewed
		}
		return claimed
	}
}

// ownerOf returns the owner named in a slot's record.
func ownerOf(value []byte) []byte {
	_, rest, _ := bytes.Cut(value, []byte(`"owner":"`))
	owner, _, _ := bytes.Cut(rest, []byte(`"`))
	return owner
}

// fate is the effect of aimed faults on one request.
type fate struct {
	key    string
	struck [kinds]bool
}

// reach records that a moment has come, and triggers the faults aimed at it.
func (f *faults) reach(m *machine, at moment, before bool, fate *fate) {
	w := f.w
	if before {
		f.moments[at]++
		if at == claimed {
			f.claimedAt = w.now
		}
	}
	if w.quiet {
		return
	}
	for i := range w.plan.aims {
		a := &w.plan.aims[i]
		n := f.moments[at]
		if a.at == at && a.before == before && (n == a.count || a.every && n%a.count == 0) {
			f.shoot(a, m, fate)
		}
	}
	if a := m.next; a != nil && a.at == at && a.before == before {
		if m.next = nil; !f.shoot(a, m, fate) {
			m.next = a
		}
	}
}

// shoot makes an aimed fault happen at a moment of a machine, and reports whether its turn is over.
func (f *faults) shoot(a *aim, m *machine, fate *fate) bool {
	w := f.w
	if a.fault == hang && !w.mayHang(m) {
		return false
	}
	if !f.next(a.fault) {
		return true
	}
	w.trace.say(m, "aimed: %v", a)
	if a.then != nil {
		m.next = a.then
	}
	if a.fault == atClock {
		m.readings = 1 + f.detail[atClock].IntN(3)
	}
	fate.struck[a.fault] = true
	if byStep[a.fault] { // it is about the request itself
		return true
	}
	struck := m
	if !a.self {
		struck = w.machines[f.detail[a.fault].IntN(len(w.machines))]
	}
	if a.fault == evict && fate.key != "" {
		f.aimedKey = fate.key // it is about this one
	}
	if a.delay == 0 && w.running == nil { // otherwise a process would crash itself in the middle
		f.happen(a.fault, struck)
		return true
	}
	w.after(int64(a.delay), func() {
		if !w.quiet {
			f.last = a.fault
			f.happen(a.fault, struck)
		}
	})
	return true
}
