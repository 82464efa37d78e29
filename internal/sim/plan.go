package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// A Regime says which faults a history has, and with that what is promised in it.
type Regime string

const (
	// Durable means that the store keeps what it acknowledged. Clocks, processes and the
	// network do as they like.
	Durable Regime = "durable"
	// Reasserted means that the store is wiped. Holders can look at their slots within the
	// grace, and none of them crashes.
	Reasserted Regime = "reasserted"
	// Strict means that the pool is strict and clocks agree to within the tolerance. The
	// store loses what it likes, processes and the network do as they like.
	Strict Regime = "strict"
	// Counted means segments and sequences over a store that keeps what it acknowledged,
	// under all other faults.
	Counted Regime = "counted"
	// Unprotected is Strict in a pool that is not: duplicates are expected. A
	// search that finds none there would be blind.
	Unprotected Regime = "unprotected"
)

// Regimes are those in which nothing must be found.
var Regimes = []Regime{Durable, Reasserted, Strict, Counted}

// Options say which history to play.
type Options struct {
	Seed   uint64
	Regime Regime // default: one after the other by seed
	Steps  int    // events before the faults end; default: 10,000
	Rival  bool   // the usual design in place of Firn

	// What follows makes a history smaller, to show a failure.
	Machines int          // at most so many
	Without  []string     // these faults do not happen
	Skip     map[int]bool // nor those of these numbers

	Trace bool // keep the story
	Count bool // go on after a duplicate, and count them
}

func (o Options) filled() Options {
	if o.Regime == "" {
		o.Regime = Regimes[o.Seed%uint64(len(Regimes))]
	}
	if o.Steps == 0 {
		o.Steps = 10_000
	}
	return o
}

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
	lostRequest
	lostAnswer
	refused
	stale
	wipe
	restore
	evict
	takeBack
	kinds
)

var kindNames = [kinds]string{
	"back-step", "forward-step", "hour-step", "leap", "suspend", "pause", "pause-at-clock", "crash", "leave", "cut-off",
	"outage", "slow", "lost-request", "lost-answer", "refused", "stale", "wipe", "restore", "evict", "take-back",
}

func (k kind) String() string { return kindNames[k] }

// kindsOf are the faults of a regime.
var kindsOf = map[Regime][]kind{
	Durable: {backStep, forwardStep, hourStep, leap, suspend, pause, atClock, crash, leave, cutOff, outage, slow,
		lostRequest, lostAnswer, refused, stale, takeBack},
	Reasserted: {leave, wipe},
	Counted: {backStep, forwardStep, hourStep, leap, suspend, pause, atClock, crash, leave, cutOff, outage, slow,
		lostRequest, lostAnswer, refused, stale},
	Strict: {backStep, forwardStep, suspend, pause, atClock, crash, leave, cutOff, outage, slow,
		lostRequest, lostAnswer, refused, wipe, restore, evict, takeBack},
}

// bySteps tells the faults that strike a request or a clock reading, so many in a
// thousand, from those that come after some time.
var byStep = map[kind]bool{atClock: true, slow: true, lostRequest: true, lostAnswer: true, refused: true, stale: true}

const maxPause = 2 * time.Minute

// A plan is what is fixed for one history. Each has only some of the faults, some
// of them often: histories with a bit of everything are all alike.
type plan struct {
	regime   Regime
	machines int
	layout   firn.Layout
	process  string

	window, look, grace, strict, tolerance time.Duration

	skew  time.Duration // of clocks at the start
	drift int64         // of clocks, in parts per million
	clock bool          // the store has one

	latency  time.Duration
	patience time.Duration // how long a client waits for an answer
	think    time.Duration // between calls for ids

	mean  [kinds]time.Duration // between faults; 0: none
	often [kinds]uint64        // faults in 1<<16
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// layouts have few workers and short sequences, so that two who should not issue
// in one tick want the same ids.
var layouts = []string{
	"41/0/0/3,unit=1s", "41/0/1/3,unit=1s", "41/0/2/4,unit=1s", "41/0/3/5,unit=1s", "41/0/2/3,unit=100ms",
	"41/0/1/2,unit=1ms", "41/0/3/4,unit=1ms", "41/1/1/3,unit=1s", "41/0/2/6,unit=10s", "39/0/2/3,unit=10ms,order=sequence-worker",
}

func draw(o Options) plan {
	r := stream(o.Seed, streamPlan)
	p := plan{regime: o.Regime, process: "firn"}
	if o.Regime == Counted {
		p.process = "counting"
	}
	if o.Rival {
		p.process = "rival"
	}
	p.machines = 1 + int(math.Floor(20*r.Float64()*r.Float64()))
	var err error
	if p.layout, err = firn.ParseLayout(pick(r, layouts...)); err != nil {
		panic(err) // a mistake in the list above
	}
	p.window = pick(r, 4*time.Second, 10*time.Second, 30*time.Second)
	p.look = pick(r, 0, 0, time.Second)
	p.tolerance = pick(r, 4*time.Second, 10*time.Second)
	p.clock = r.IntN(2) == 0
	p.latency = pick(r, 300*time.Microsecond, 3*time.Millisecond, 30*time.Millisecond)
	p.patience = pick(r, time.Second, 3*time.Second, 10*time.Second)
	p.think = pick(r, 50*time.Millisecond, 300*time.Millisecond, 1500*time.Millisecond)
	p.drift = pick[int64](r, 0, 20, 500)
	p.skew = pick(r, 100*time.Millisecond, p.tolerance/4)
	swarm := 0.6
	switch o.Regime {
	case Durable, Counted:
		p.skew = pick(r, 100*time.Millisecond, p.tolerance/4, time.Minute)
		p.drift = pick[int64](r, 0, 500, 50_000)
	case Reasserted:
		swarm = 1
		p.skew = 500 * time.Millisecond
		p.drift = 20
		p.look = pick(r, 0, time.Second)
	case Strict:
		p.window = pick(r, 10*time.Second, 30*time.Second)
		p.clock = true
		p.tolerance = (p.window - p.layout.Unit()) / time.Duration(16+r.IntN(16))
		p.skew = p.tolerance / 4
		p.strict = p.window + maxLead + 4*p.tolerance + 2*p.layout.Unit()
	}
	p.grace = p.slowestLook() + 9*time.Second
	if o.Regime == Counted { // each of its steps costs several exchanges with the store
		p.machines = 1 + p.machines/3
		p.think *= 4
	}
	p.faults(r, o, swarm)
	if o.Machines > 0 {
		p.machines = min(p.machines, o.Machines)
	}
	return p
}

// slowestLook is by which newcomers wait.
func (p *plan) slowestLook() time.Duration { return max(p.look, 3*time.Second) }

// maxLead is the most that generators may run ahead of their clocks here.
const maxLead = 2 * time.Second

func (p *plan) faults(r *rand.Rand, o Options, swarm float64) {
	regime := o.Regime
	if regime == Unprotected {
		regime = Strict
	}
	without := map[string]bool{}
	for _, name := range o.Without {
		without[name] = true
	}
	for _, k := range kindsOf[regime] {
		on, rate := r.Float64() < swarm, r.Float64()
		if !on || without[k.String()] {
			continue
		}
		if byStep[k] {
			p.often[k] = uint64(8 * math.Pow(2000, rate)) // 0.01% to 25%
			if k == atClock {
				p.often[k] = uint64(2 * math.Pow(200, rate)) // 0.003% to 0.6%
			}
			continue
		}
		p.mean[k] = time.Duration(float64(5*time.Second) * math.Pow(100, rate)) // 5 s to 8 min
		if k == leap || k == outage || k == cutOff {
			p.mean[k] *= 2
		}
	}
}

func (p *plan) String() string {
	var faults []string
	for k := range kinds {
		switch {
		case p.mean[k] > 0:
			faults = append(faults, fmt.Sprintf("%v every %v", k, p.mean[k].Round(time.Second)))
		case p.often[k] > 0:
			faults = append(faults, fmt.Sprintf("%v %.2g%%", k, float64(p.often[k])/655.36))
		}
	}
	return fmt.Sprintf("%s: %d processes, layout %v, window %v, grace %v, strict %v, tolerance %v, skew %v, drift %d ppm, a store with a clock: %v, latency %v, patience %v; faults: %s",
		p.regime, p.machines, p.layout, p.window, p.grace, p.strict, p.tolerance, p.skew, p.drift, p.clock, p.latency, p.patience, strings.Join(faults, ", "))
}
