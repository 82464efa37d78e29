package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

const (
	maxPause        = 2 * time.Minute
	longestPatience = 10 * time.Second
	// maxLead is the limit of how far generators may run ahead of their clocks here, and leastLead the
	// minimum for the steady ones.
	maxLead   = 2 * time.Second
	leastLead = 10 * time.Millisecond
	// steadyLead is how far ahead of the wall clock a steady one may be.
	steadyLead = 2 * time.Millisecond
	// endsAfter is the end of those layouts that end within a history.
	endsAfter = 3 * time.Minute
)

// A plan holds the fixed settings of one history. Each has only some of the faults, some of them
// often: histories with a bit of everything are all alike.
type plan struct {
	regime   Regime
	duel     bool // there are as many workers as holders, and a newcomer that wants one
	small    bool // few processes, few faults, most of them aimed
	machines int
	late     int // how many of these begin when the store loses writes
	layout   firn.Layout
	process  string
	source   string // of workers; empty: the pool in the store

	window, look, strict, tolerance, maxLead time.Duration

	short bool          // the strict wait is too short
	ahead int64         // ticks of the policy ahead, of all processes; 0: each draws its policies
	skew  time.Duration // of clocks at the start
	drift int64         // of clocks, in parts per million

	clock      bool          // the store has a clock
	serverSkew time.Duration // of its servers' clocks
	embedded   bool          // it reports that it keeps what it acknowledges
	lifeless   bool          // its lives have no names
	replicated bool          // it waits for its replica before it confirms; otherwise it confirms alone
	async      bool          // it confirms at once, without waiting for its replica

	latency  time.Duration
	patience time.Duration // how long a client waits for an answer
	think    time.Duration // between calls for ids; 0: every tick is used up
	retry    time.Duration // between tries to join
	slowLeg  time.Duration // of some processes' readings of the store's clock: one direction takes this long

	mean  [kinds]time.Duration // between faults; 0: no such fault
	often [kinds]uint64        // faults in 1<<16
	aims  []aim
	never [kinds]bool // kinds that must not strike beside others that do

	named   bool   // machines have names of their own
	crowded bool   // a pool so large that newcomers read parts of it, with all processes in two of these
	spares  bool   // processes without a store have spares
	stride  int64  // of segments
	again   uint64 // added to the seed of the draws during the play
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// layouts have few workers and short sequences, so that two processes that must not share a tick want
// the same ids. The last ends within a history.
var layouts = []string{
	"41/0/0/3,unit=1s", "41/0/1/3,unit=1s", "41/0/2/4,unit=1s", "41/0/3/5,unit=1s", "41/0/2/3,unit=100ms",
	"41/0/1/2,unit=1ms", "41/0/3/4,unit=1ms", "41/1/1/3,unit=1s", "41/0/2/6,unit=10s", "39/0/2/3,unit=10ms,order=sequence-worker",
	"50/0/1/2,unit=100us", "41/1/0/3,unit=100ms", "12/0/1/3,unit=1s,epoch=" + noon.Add(endsAfter-4096*time.Second).Format(time.RFC3339),
}

// smallLayouts have one or two workers.
var smallLayouts = []string{"41/0/0/3,unit=1s", "41/0/0/3,unit=100ms", "41/0/1/3,unit=1s", "41/0/1/4,unit=10ms", "41/0/0/4,unit=1ms", "50/0/0/4,unit=100us", "41/0/0/6,unit=10s"}

// roomyLayouts have several workers for each of two processes.
var roomyLayouts = []string{"41/0/2/4,unit=1s", "41/0/3/5,unit=1s", "41/0/2/3,unit=100ms", "41/0/3/4,unit=1ms", "39/0/2/3,unit=10ms,order=sequence-worker"}

// largeLayouts have so many workers that newcomers read parts of a pool.
var largeLayouts = []string{"41/0/11/3,unit=1s", "41/1/11/3,unit=100ms", "41/0/11/4,unit=10ms", "50/0/11/2,unit=100us"}

// crowd is how many workers the processes of a large pool mostly use. Half of them are crowdApart from the
// others: in another part of the pool.
const (
	crowd      = 16
	crowdApart = 1000
)

// crowds makes a third of the pools large.
func (p *plan) crowds(seed uint64) {
	r := stream(seed, streamCrowd)
	if p.process != "firn" || p.strict > 0 || p.source != "" || p.duel || r.IntN(3) > 0 {
		return
	}
	p.crowded = true
	p.layout = layoutOf(pick(r, largeLayouts...))
	p.machines = max(p.machines, 4+r.IntN(6)) // a part must show three holders
	if p.ahead > 0 {
		p.ahead = int64(p.tolerance / p.layout.Unit())
	}
}

// workers is how many workers of a datacenter are used.
func (p *plan) workers() int64 {
	if p.crowded {
		return crowd
	}
	return p.layout.MaxWorker() + 1
}

func layoutOf(text string) firn.Layout {
	l, err := firn.ParseLayout(text)
	if err != nil {
		panic(err) // a mistake in the lists above
	}
	return l
}

// draw draws the plan of a seed, and applies the changes.
func draw(o Options) plan {
	r := stream(o.Seed, streamPlan)
	row := regimes[o.Regime]
	row.faults = o.chosen(row.faults)
	p := plan{regime: o.Regime, process: row.process, maxLead: maxLead, named: o.Seed%2 == 0}
	p.small = r.IntN(2) == 0
	p.machines = 1 + int(math.Floor(20*r.Float64()*r.Float64()))
	p.layout = layoutOf(pick(r, layouts...))
	if p.small {
		p.machines = 2 + r.IntN(2)
		p.layout = layoutOf(pick(r, smallLayouts...))
	}
	p.drawSettings(r)
	p.drawFaults(r, row.faults)
	row.draw(&p, r)
	if o.Regime == Reasserted || o.Regime == Alone || p.small {
		p.drawAims(r, &row) // which depend on its waits
	}
	for _, c := range o.Changes {
		p.change(stream(c, streamChange), &row, c)
	}
	if o.Rival {
		p.process = "rival"
	}
	p.lends(&o)
	p.crowds(o.Seed)
	if p.process == "alone" { // each process has a number
		p.machines = min(p.machines, int(p.layout.MaxWorker()+1))
	}
	p.leaveOut(&o)
	if o.Machines > 0 {
		p.machines = min(p.machines, o.Machines)
	}
	if p.process == "lent" {
		p.machines = max(p.machines, servers+1)
	}
	p.late = min(p.late, p.machines-1)
	return p
}

func (p *plan) drawSettings(r *rand.Rand) {
	p.window = pick(r, 4*time.Second, 10*time.Second, 30*time.Second)
	p.look = pick(r, 0, 0, time.Second)
	p.tolerance = pick(r, 4*time.Second, 10*time.Second)
	p.clock = r.IntN(2) == 0
	p.latency = pick(r, 300*time.Microsecond, 3*time.Millisecond, 30*time.Millisecond)
	p.patience = pick(r, time.Second, 3*time.Second, longestPatience)
	p.think = pick(r, 0, 50*time.Millisecond, 300*time.Millisecond, 1500*time.Millisecond)
	p.drift = pick[int64](r, 0, 20, 500)
	p.skew = pick(r, 100*time.Millisecond, p.tolerance/4)
	p.lifeless = r.IntN(4) == 0
	p.retry = pick(r, 500*time.Millisecond, 5*time.Second)
}

// longestLook is the longest look that a window allows.
func (p *plan) longestLook() time.Duration { return p.window / 4 }

// slowestLook is the look that newcomers assume, and grace their longest wait: see lease.Config.
func (p *plan) slowestLook() time.Duration { return max(p.look, 3*time.Second) }
func (p *plan) grace() time.Duration       { return p.slowestLook() + leastGrace + 2*p.layout.Unit() }

// drawFaults draws how often each kind strikes: in a small world only a few kinds do.
func (p *plan) drawFaults(r *rand.Rand, faults []kind) {
	swarm := 0.6
	switch {
	case p.small:
		swarm = min(0.5, 3/float64(len(faults)))
	case p.regime == Reasserted:
		swarm = 1
	}
	for _, k := range faults {
		if on, rate := r.Float64() < swarm, r.Float64(); on {
			p.setRate(k, rate)
		}
	}
}

// setRate makes a kind of fault strike at a rate from 0 to 1: for faults by step a greater rate
// strikes more often, for the others a smaller one.
func (p *plan) setRate(k kind, rate float64) {
	switch {
	case k == atClock:
		p.often[k] = uint64(2 * math.Pow(200, rate)) // 0.003% to 0.6%
	case byStep[k]:
		p.often[k] = uint64(8 * math.Pow(2000, rate)) // 0.01% to 25%
	default:
		p.mean[k] = time.Duration(float64(5*time.Second) * math.Pow(100, rate)) // 5 s to 8 min
		if k == leap || k == outage || k == cutOff {
			p.mean[k] *= 2
		}
	}
}

// leaveOut removes the unwanted faults. That changes no other draw.
func (p *plan) leaveOut(o *Options) {
	for k := range kinds {
		p.never[k] = p.never[k] || slices.Contains(o.Without, k.String())
		if p.never[k] {
			p.mean[k], p.often[k] = 0, 0
		}
	}
	aims := p.aims[:0:0]
	for _, a := range p.aims {
		if p.never[a.fault] {
			continue
		}
		if a.then != nil && p.never[a.then.fault] {
			a.then = nil
		}
		aims = append(aims, a)
	}
	p.aims = aims
}

// change changes one or two settings of a plan.
func (p *plan) change(r *rand.Rand, row *regime, again uint64) {
	if r.IntN(3) == 0 {
		p.again += again // the same plan with other random draws
	}
	for range 1 + r.IntN(2) {
		k := row.faults[r.IntN(len(row.faults))]
		switch r.IntN(8) {
		case 0:
			p.machines = 1 + r.IntN(4)
		case 1:
			if p.layout = layoutOf(pick(r, smallLayouts...)); p.strict > 0 {
				p.setStrict(r)
			}
		case 2:
			p.latency = pick(r, 300*time.Microsecond, 3*time.Millisecond, 30*time.Millisecond)
			p.think /= time.Duration(1 + r.IntN(4))
		case 3:
			p.mean[k], p.often[k] = 0, 0
		case 4:
			p.setRate(k, r.Float64())
		case 5:
			if len(p.aims) > 0 {
				p.aims = slices.Clone(p.aims)
				a := &p.aims[r.IntN(len(p.aims))]
				a.count = max(1, a.count+r.IntN(5)-2)
				a.delay = p.aimDelay(r)
			}
		case 6:
			if n := len(p.aims); n > 0 {
				p.aims = append(p.aims[:0:0], p.aims[:n-1]...)
			}
		default:
			p.aims = p.aims[:len(p.aims):len(p.aims)] // another history may share them
			if len(row.pairs) > 0 && r.IntN(2) == 0 {
				p.drawPair(r, row)
			} else {
				p.aims = append(p.aims, p.drawAim(r, row.faults))
			}
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
	for _, a := range p.aims {
		faults = append(faults, a.String())
	}
	return fmt.Sprintf("%s: %d processes, layout %v, window %v, look %v, strict %v, tolerance %v, skew %v, drift %d ppm, latency %v, patience %v, %s; faults: %s",
		p.regime, p.machines, p.layout, p.window, p.look, p.strict, p.tolerance, p.skew, p.drift, p.latency, p.patience, p.storeText(), strings.Join(faults, ", "))
}

func (p *plan) storeText() string {
	text := "a store"
	add := func(is bool, what string) {
		if is {
			text += ", " + what
		}
	}
	add(p.embedded, "embedded")
	add(p.clock, "with a clock")
	add(p.lifeless, "whose lives have no names")
	add(p.replicated, "that confirms what its replica has")
	add(p.async, "that confirms before")
	add(p.source != "", "with a source of one's own")
	return text
}
