package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A Regime selects the faults of a history, and with them the promises it checks.
type Regime string

// The regimes. The table below has the promises of each.
const (
	Durable     Regime = "durable"
	Reasserted  Regime = "reasserted"
	Strict      Regime = "strict"
	Counted     Regime = "counted"
	Forgetful   Regime = "forgetful"
	Alone       Regime = "alone"
	Unprotected Regime = "unprotected"
)

// Regimes are those without expected findings.
var Regimes = []Regime{Durable, Reasserted, Strict, Counted, Forgetful, Alone}

// Known reports whether a regime exists.
func (r Regime) Known() bool {
	_, ok := regimes[r]
	return ok
}

// A regime is one row of the table.
type regime struct {
	process string // the kind of process on the machines
	faults  []kind
	pairs   [][2]kind                   // pairs that together test the regime's promise
	draw    func(p *plan, r *rand.Rand) // its own settings
}

// Groups of faults.
var (
	clockFaults   = []kind{backStep, forwardStep, hourStep, leap}
	processFaults = []kind{suspend, pause, atClock, crash, leave}
	networkFaults = []kind{cutOff, outage, slow, hang, lostRequest, lostAnswer, refused, stale, echo}
	// serverFaults keep confirmed writes.
	serverFaults = []kind{unlink, failover, fork, rebirth, unconfirmed, misreport}
	// losses lose confirmed writes.
	losses = []kind{wipe, restore, evict}
)

// strictFaults are all but those that set a clock far ahead for long, and stale reads.
var strictFaults = slices.Concat([]kind{backStep, forwardStep, hourStep}, processFaults,
	[]kind{cutOff, outage, slow, hang, lostRequest, lostAnswer, refused, echo}, serverFaults, losses, []kind{takeBack})

// losing combines a loss with a holder that does not notice it.
var losing = [][2]kind{{evict, cutOff}, {wipe, cutOff}, {evict, pause}, {restore, cutOff}, {fork, cutOff}}

// splitting loses on one side of a fork what a process on the other side relies on.
var splitting = [][2]kind{{fork, evict}, {fork, wipe}}

// regimes is the table: the processes, the faults, and the promises.
var regimes = map[Regime]regime{
	// The store keeps confirmed writes, and may lose unconfirmed ones. All other faults occur. Promised:
	// no duplicate, order, progress.
	Durable: {
		process: "firn",
		faults:  slices.Concat(clockFaults, processFaults, networkFaults, serverFaults, []kind{takeBack}),
		pairs:   [][2]kind{{fork, cutOff}, {unlink, failover}, {unconfirmed, failover}, {lostAnswer, crash}, {lostRequest, cutOff}, {lostRequest, cutOff}},
		draw: func(p *plan, r *rand.Rand) {
			p.skew = pick(r, 100*time.Millisecond, p.tolerance/4, time.Minute)
			p.drift = pick[int64](r, 0, 500, 50_000)
			p.replicated = r.IntN(3) > 0
			p.source = pick(r, "", "", "", "", "", "", "own")
			if p.source == "" && r.IntN(6) == 0 {
				p.embedded, p.replicated = true, false
			}
		},
	},
	// The store loses confirmed writes, and the pool is not strict. Holders are alive and reach the
	// store within the grace. Promised: no duplicate.
	Reasserted: {
		process: "firn",
		faults:  []kind{leave, hourStep, backStep, forwardStep, pause, atClock, suspend, hang, failover, fork, rebirth, wipe, restore, takeBack},
		pairs: [][2]kind{
			{wipe, hang}, {wipe, wipe}, {hourStep, wipe}, {hourStep, wipe}, {restore, hang}, {hourStep, restore}, {takeBack, restore}, {forwardStep, restore}, {forwardStep, backStep},
			{wipe, pause}, {restore, pause}, {pause, wipe},
		},
		draw: func(p *plan, r *rand.Rand) {
			p.skew = 500 * time.Millisecond
			p.drift = 20
			p.window = pick(r, 10*time.Second, 30*time.Second, 2*time.Minute) // also more than the grace
			p.look = pick(r, 0, time.Second, p.longestLook())
			p.replicated = r.IntN(3) == 0
			if r.IntN(2) == 0 {
				p.clock = true
			} else {
				p.never[hourStep] = true
				p.never[backStep] = true
				p.never[forwardStep] = true
			}
			if p.clock {
				p.skew = pick(r, p.skew, p.tolerance*9/10)
			}
			// What a holder may use after its last look ends by its own clock.
			apart := p.skew > time.Second || !p.never[hourStep] && r.IntN(2) == 0
			for _, k := range []kind{pause, atClock, suspend} {
				p.never[k] = p.never[k] || apart
			}
			for _, k := range []kind{hourStep, backStep, forwardStep} {
				p.never[k] = p.never[k] || !apart
			}
			p.ahead = pick(r, 0, 0, 0, int64(p.tolerance/p.layout.Unit()))
			p.late = r.IntN(4)
			p.machines += p.late
			for _, k := range []kind{failover, fork, rebirth, wipe, restore} {
				if p.mean[k] > 0 { // seldom enough for newcomers to make progress
					p.mean[k] += time.Duration(r.IntN(4)) * p.grace()
				}
			}
		},
	},
	// The pool is strict, and the store's clocks are right to within the tolerance. All other faults
	// occur. Promised: no duplicate.
	Strict: {
		process: "firn",
		faults:  strictFaults,
		pairs:   slices.Concat(losing, splitting),
		draw:    drawStrict,
	},
	// Segments and sequences over a store that keeps confirmed writes. Promised: no duplicate, order
	// within a process, and for sequences order over all processes.
	Counted: {
		process: "counting",
		faults:  slices.Concat(clockFaults, processFaults, networkFaults, serverFaults),
		pairs:   [][2]kind{{unlink, failover}, {fork, lostAnswer}, {lostAnswer, leave}},
		draw: func(p *plan, r *rand.Rand) {
			drawCounting(p, r)
			p.replicated = r.IntN(3) > 0
		},
	},
	// Segments and sequences over a store that loses writes. Promised: no duplicate within a process,
	// and order there.
	Forgetful: {
		process: "counting",
		faults:  slices.Concat(clockFaults, processFaults, networkFaults, serverFaults, losses),
		draw:    drawCounting,
	},
	// Generators without a store, some with spares, restarted again and again for the same worker, with clocks
	// that are not behind at a restart, unless an orderly end has allowed that. Promised: no duplicate.
	Alone: {
		process: "alone",
		faults:  []kind{forwardStep, suspend, pause, atClock, crash, leave, backStep},
		pairs:   [][2]kind{{atClock, crash}, {atClock, leave}, {backStep, crash}},
		draw: func(p *plan, r *rand.Rand) {
			p.skew = time.Minute
			p.drift = pick[int64](r, 0, 20, 500)
			if p.spares = r.IntN(2) == 0; p.spares { // few processes, with many numbers each
				p.layout = layoutOf(pick(r, roomyLayouts...))
				p.machines = 1 + r.IntN(2)
				for _, k := range []kind{backStep, forwardStep, crash, leave} {
					p.setRate(k, r.Float64()/2)
				}
			}
		},
	},
	// Like Strict, in a pool that is not strict. A search that finds no duplicate here would be blind.
	Unprotected: {
		process: "firn",
		faults:  strictFaults,
		pairs:   losing,
		draw: func(p *plan, r *rand.Rand) {
			drawStrict(p, r)
			p.strict = 0 // the only difference
			p.think = pick(r, 50*time.Millisecond, 300*time.Millisecond)
		},
	},
}

func drawStrict(p *plan, r *rand.Rand) {
	p.clock = true
	p.think = pick(r, time.Second, 5*time.Second) // each claim waits long: leave steps for the time after it
	p.maxLead = pick(r, 0, maxLead)
	p.async = r.IntN(2) == 0
	p.replicated = r.IntN(2) == 0
	if r.IntN(3) == 0 {
		p.patience, p.slowLeg = longestPatience, longestPatience/2
	}
	p.setStrict(r)
	p.serverSkew = pick(r, 0, p.tolerance, p.tolerance)
}

// setStrict draws the interdependent settings of a strict pool. The wait is the shortest allowed, the
// tolerance nearly the greatest.
func (p *plan) setStrict(r *rand.Rand) {
	unit := p.layout.Unit()
	p.window = max(pick(r, 10*time.Second, 30*time.Second), 6*unit)
	p.tolerance = (p.window - 4*unit) / time.Duration(16+r.IntN(16))
	// A clock beyond the tolerance is refused, unless the delay of the store's answer hides it.
	p.skew = pick(r, p.tolerance, p.tolerance, p.tolerance+2*p.patience/3) - min(4*p.latency, p.tolerance/2)
	p.strict = p.window + max(p.maxLead, leastLead) + steadyLead + 4*p.tolerance + 2*unit
	if p.short = r.IntN(4) == 0; p.short { // must be refused
		if p.layout.Unit() > 100*time.Millisecond {
			p.layout = layoutOf(pick(r, smallLayouts[1], smallLayouts[3]))
		}
		p.maxLead = 0
		p.strict = p.window + leastLead + p.tolerance*time.Duration(1+r.IntN(2)) + 2*p.layout.Unit()
	}
}

func drawCounting(p *plan, r *rand.Rand) {
	p.skew = pick(r, 100*time.Millisecond, p.tolerance/4, time.Minute)
	p.drift = pick[int64](r, 0, 500, 50_000)
	p.machines = 1 + p.machines/3 // each of its steps costs several exchanges with the store
	p.think *= 4
	p.stride = pick[int64](r, 1, 1, maxStride)
}
