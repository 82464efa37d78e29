package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// A Finding is a violation of a promise.
type Finding struct {
	Kind string // duplicate, overlap, interval, order, error, progress, spin, wait, time, grant, settings
	Text string
	Step int
}

// A Result is the outcome of a history.
type Result struct {
	Seed       uint64
	Name       string // the seed and its changes
	Regime     Regime
	Plan       string
	Steps      int
	IDs        int
	Duplicates int
	Machines   int
	Faults     int           // how many happened
	Kinds      [kinds]int    // how many of each kind
	Lived      time.Duration // virtual
	Finding    *Finding      // the first; nil if nothing was found
	Story      []string      // with Options.Trace
	Cover      []uint32      // the situations it reached

	numbers int // the greatest number of a fault, including those left out
}

// An oracle records all ids and all grants, and checks them.
type oracle struct {
	w          *world
	seen       map[uint64]bool
	ids        int
	duplicates int
	finding    *Finding
	grants     map[worker][]owned
	highest    map[worker]firn.Tick             // in any id
	raised     [segmentNames][maxStride]firn.ID // by offset: later lives have only greater ids
	sequenced  [sequenceNames]firn.ID           // the greatest id issued so far
	taken      int64                            // how often the operator took a worker back
	ahead      map[worker]firn.Tick             // released with a last tick taken from a wrong clock
	users      map[use]*life                    // if overlaps of grants are not compared
}

type worker struct{ datacenter, number int64 }

// A use is a tick of a worker; only one life may issue ids of it.
type use struct {
	worker
	tick firn.Tick
}

type owned struct {
	interval
	l *life
}

func newOracle(w *world) oracle {
	return oracle{w: w, seen: map[uint64]bool{}, grants: map[worker][]owned{}, highest: map[worker]firn.Tick{}, ahead: map[worker]firn.Tick{}, users: map[use]*life{}}
}

func (o *oracle) stopped() bool { return o.finding != nil && !o.w.Count }

func (o *oracle) find(kind string, m *machine, format string, args ...any) {
	if o.finding != nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	o.w.trace.say(m, "FOUND %s: %s", kind, text)
	if m != nil {
		text = m.name + ": " + text
	}
	o.finding = &Finding{Kind: kind, Text: text, Step: o.w.steps}
}

func (o *oracle) result() Result {
	return Result{
		Seed: o.w.Seed, Name: o.w.Name(), Regime: o.w.plan.regime, Plan: o.w.plan.String(), Steps: o.w.steps, IDs: o.ids, Duplicates: o.duplicates,
		Machines: len(o.w.machines), Faults: o.w.faults.happened(), numbers: o.w.faults.count, Kinds: o.w.faults.kinds, Lived: time.Duration(o.w.now), Finding: o.finding,
		Story: o.w.trace.lines(), Cover: o.w.cover.features(),
	}
}

// id checks an id against all others, and against the grants of its life.
func (o *oracle) id(l *life, id firn.ID) {
	o.ids++
	l.m.made++
	o.w.trace.id(l.m, id)
	layout := o.w.plan.layout
	parts, err := layout.Decompose(id)
	if err != nil {
		o.find("id", l.m, "%v", err)
	}
	tick, number := parts.Tick, parts.Worker
	key := worker{parts.Datacenter, number}
	if !o.add(uint64(id)) {
		o.duplicates++
		if tick > o.ahead[key] {
			o.find("duplicate", l.m, "id %s was issued before", o.show(id))
		}
	}
	if o.w.plan.regime == Reasserted {
		if by := o.users[use{key, tick}]; by != nil && by != l && tick > o.ahead[key] {
			o.find("overlap", l.m, "id %s is of a tick of which process %s (life %d) issued ids", o.show(id), by.m.name, by.number)
		}
		o.users[use{key, tick}] = l
	}
	if tick > o.highest[key] {
		o.highest[key] = tick
	}
	o.time(l, id, tick)
	if l.grants == nil {
		return
	}
	list := l.grants[number]
	for i := len(list) - 1; i >= 0; i-- {
		if g := list[i]; tick > g.after && tick <= g.through {
			return
		}
	}
	o.find("interval", l.m, "id %s lies in no interval granted: %v", o.show(id), list)
}

// add records an id, and reports whether it is new.
func (o *oracle) add(id uint64) bool {
	before := len(o.seen)
	o.seen[id] = true
	return len(o.seen) > before
}

// neighbours records how near a grant comes to those of others.
func (o *oracle) neighbours(l *life, list []owned, own interval) {
	nearest := int64(-1)
	for _, other := range list {
		if gap := int64(own.after - other.through); other.l != l && gap >= 0 && (nearest < 0 || gap < nearest) {
			nearest = gap
		}
	}
	o.w.cover.gap(nearest)
}

// counted checks an id of a counter against all others of it.
func (o *oracle) counted(l *life, what string, number uint64, id firn.ID) {
	o.ids++
	l.m.made++
	o.w.trace.say(l.m, "%s: id %d", what, id)
	if o.w.plan.regime == Forgetful { // others may have issued it
		number |= l.serial << 3
	}
	if !o.add(number<<45 | uint64(id)) {
		o.duplicates++
		o.find("duplicate", l.m, "%s: id %d was issued before", what, id)
	}
}

func (o *oracle) show(id firn.ID) string {
	l := o.w.plan.layout
	p := partsOf(l, id)
	return fmt.Sprintf("%d (worker %d, tick %d, sequence %d)", id, p.Worker, p.Tick, p.Sequence)
}

func (o *oracle) granted(l *life, g firn.Grant) {
	o.w.trace.say(l.m, "is granted worker %d, ticks %d to %d (now %d)", g.Worker, g.After+1, g.Through, o.w.trueTick())
	l.granted = o.w.now
	o.own(l, g.Worker, interval{g.After, g.Through}, "granted")
}

func (o *oracle) renewed(l *life, held, g firn.Grant) {
	if g.Worker != held.Worker || g.After != held.After || g.Through < held.Through {
		o.find("grant", l.m, "%+v renewed as %+v", held, g)
	}
	if g.Through == held.Through {
		return
	}
	o.w.trace.say(l.m, "worker %d is renewed to tick %d (now %d)", g.Worker, g.Through, o.w.trueTick())
	o.own(l, g.Worker, interval{held.Through, g.Through}, "renewed")
}

// own records an interval and checks it against all others of the worker. If newcomers trust a wiped
// store after a grace, the intervals of dead holders are granted again.
func (o *oracle) own(l *life, number int64, own interval, how string) {
	key := worker{l.datacenter, number}
	o.neighbours(l, o.grants[key], own)
	if r := o.w.plan.regime; r != Reasserted {
		for _, other := range o.grants[key] {
			if max(other.after, own.after) < min(other.through, own.through) && other.l != l {
				o.find("overlap", l.m, "worker %d is %s for ticks %d to %d, and process %s (life %d) has it for %d to %d",
					number, how, own.after+1, own.through, other.l.m.name, other.l.number, other.after+1, other.through)
			}
		}
	}
	o.grants[key] = append(o.grants[key], owned{own, l})
	l.grants[number] = append(l.grants[number], own)
}

// released ends a life's intervals after tick last: its generator has ended, or has left the worker
// for good.
func (o *oracle) released(l *life, g firn.Grant, last firn.Tick) {
	o.w.trace.say(l.m, "gives back worker %d after tick %d", g.Worker, last)
	key := worker{l.datacenter, g.Worker}
	// For a worker that was released and is forgotten, newcomers know only how far clocks within the
	// tolerance had come, and their lead.
	if p := &o.w.plan; p.regime == Reasserted && l.m.most > int64(p.tolerance) {
		o.ahead[key] = max(o.ahead[key], last)
	}
	for i, other := range o.grants[key] {
		if other.l == l && other.through > last && other.after >= g.After {
			o.grants[key][i].through = min(other.through, max(last, other.after))
		}
	}
}

// documented lists the errors that callers may get.
var documented = []error{
	firn.ErrFence, firn.ErrClockBack, firn.ErrClosed, firn.ErrTimeExhausted, firn.ErrRange,
	lease.ErrFull, lease.ErrClock, lease.ErrLost,
	store.ErrUnavailable, store.ErrConflict, store.ErrRefused,
	segment.ErrNotConsecutive,
}

func (o *oracle) documented(m *machine, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if strings.Contains(text, "context deadline exceeded") || strings.Contains(text, "context canceled") {
		return
	}
	for _, known := range documented {
		if errors.Is(err, known) {
			return
		}
	}
	o.find("error", m, "an error that is not documented: %v", err)
}

// stuck judges a process that has made no id since the faults ended.
func (o *oracle) stuck(m *machine) {
	l := m.life
	if l == nil || o.w.Rival {
		return // it had left when the faults ended; or it is not to be judged
	}
	switch p := m.proc.(type) {
	case *lender:
		return
	case *borrower:
		if o.w.plan.ended(o.w) || p.b != nil && o.w.now-p.b.l.granted < int64(time.Minute) {
			return
		}
	}
	var back *firn.ClockBackError
	switch err := l.last; {
	case o.w.plan.short && errors.Is(err, firn.ErrRange):
	case o.w.plan.ended(o.w) && (errors.Is(err, firn.ErrTimeExhausted) || errors.Is(l.refused, firn.ErrTimeExhausted)):
	case o.w.now-l.granted < int64(time.Second):
		// It waited for a worker, and got one just now.
	case errors.Is(err, lease.ErrFull), errors.Is(l.refused, lease.ErrFull):
		// There are more processes than workers.
	case l.pinned && o.w.store.fence(int64(m.id)) >= o.w.trueTick():
		// Another process has its pinned worker, or it has claimed that worker itself ahead of its clock,
		// and waits.
	case errors.As(err, &back) && back.By > time.Minute:
		// A wall clock was far ahead before it was corrected: refused until then.
	case partsOf(o.w.plan.layout, l.most).Tick > o.w.trueTick()+firn.Tick(time.Second/o.w.plan.layout.Unit()) && l.most >= 0:
		// Its ids are ahead of the clock, which was ahead once; it waits for the clock.
	case l.virtual && o.w.plan.leads():
		// It began at a wrong clock's time, and waits for that time.
	case o.w.plan.maySpoil() && (err == nil || errors.Is(err, firn.ErrFence) || errors.Is(err, lease.ErrClock)):
	case o.w.plan.maySpoil() && l.kept != nil && l.kept.State().Left > 2*o.w.plan.window:
	default:
		o.find("progress", m, "makes no more ids; its latest error: %v; why it got no worker: %v (%v)", err, l.refused, l.config)
	}
}

// lost returns a slot that newcomers cannot have although its fence lies further ahead than its ids
// explain.
func (o *oracle) lost() (lease.Slot, bool) {
	w := o.w
	p, err := lease.Inspect(context.Background(), direct{w.store}, pool)
	if err != nil {
		o.find("progress", nil, "the pool cannot be read: %v", err)
		return lease.Slot{}, false
	}
	// A pinned process that starts ahead begins a window later each time its worker is taken back.
	window := firn.Tick(2+o.taken) * (firn.Tick(w.plan.window/w.plan.layout.Unit()) + 2)
	for _, slot := range p.Slots {
		if slot.Fence >= w.trueTick() && slot.Fence > o.highest[worker{slot.Datacenter, slot.Worker}]+window && slot.Host != newcomer {
			return slot, true
		}
	}
	return lease.Slot{}, false
}

// ended reports whether the layout has run out of time, by a correct clock.
func (p *plan) ended(w *world) bool { return w.trueTick() >= p.layout.MaxTick() }

// maySpoil reports whether a clock far ahead can have moved fences there: there is no other clock to
// compare it with, or a custom source that compares nothing.
func (p *plan) maySpoil() bool {
	return (!p.clock || p.source != "") && p.leads()
}

// leads reports whether a fault, by its rate or aimed, may set a clock far ahead.
func (p *plan) leads() bool {
	far := []kind{leap, hourStep, forwardStep}
	return slices.ContainsFunc(far, func(k kind) bool { return p.mean[k] > 0 }) ||
		slices.ContainsFunc(p.aims, func(a aim) bool { return slices.Contains(far, a.fault) })
}

// partsOf returns the parts of an id. They are zero for one that the layout cannot have made,
// which [oracle.id] reports.
func partsOf(l firn.Layout, id firn.ID) firn.Parts {
	p, err := l.Decompose(id)
	if err != nil {
		return firn.Parts{}
	}
	return p
}
