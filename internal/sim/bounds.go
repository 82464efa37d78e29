package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

// slack is how much longer than its limit a call may take: for a network, a scheduler, a slow clock.
const slack = 2 * time.Second

// lookPatience is how long a call may wait for looks that are overdue: for one that began before a pause, and one after
// it, which writes the slot again.
const lookPatience = 20 * time.Second

// switchPatience is how long a call may wait for another worker under the policy switch: for holders
// that the store may have forgotten, twice, and for the store.
func (p *plan) switchPatience() time.Duration { return 2*p.grace() + 20*time.Second }

// bounds sets how long calls may take under a configuration, and how far the times in ids may differ
// from the clock.
func (l *life) bounds(c *lease.Config, p *plan) {
	g := &c.Generator
	unit := p.layout.Unit()
	l.lead, l.lag = 2*g.Lead()+3*unit, false // a steady clock may begin ahead by that much
	// The generator waits out a small step back, and a grant may begin ahead by the tolerance.
	l.patience = p.tolerance + 2*unit + 2*g.Lead() + slack + lookPatience
	for _, policy := range g.Rollback {
		var limit string
		var number int64
		switch name, settings, _ := strings.Cut(policy.String(), " "); name {
		case "wait":
			scan(settings, &limit, &number)
			l.patience += time.Duration(number) * durationOf(limit)
		case "switch":
			l.patience += p.switchPatience()
		case "ahead":
			scan(settings, &number)
			l.lead += time.Duration(number) * unit
		case "history":
			scan(settings, &number, &limit)
			l.patience += durationOf(limit)
			l.lag = true
		}
	}
	if g.Clock == firn.ClockVirtual || c.PinnedAhead {
		l.lead, l.patience, l.lag = -1, -1, true
	}
}

// scan parses the settings of a policy.
func scan(settings string, into ...any) {
	if _, err := fmt.Sscan(settings, into...); err != nil {
		panic(err) // the format of policies has changed
	}
}

// durationOf parses the limit of a policy.
func durationOf(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err) // the format of policies has changed
	}
	return d
}

// A start is the time of a call, and the number of ids the process had made by then.
type start struct {
	at   int64
	made int
}

func (m *machine) start() start { return start{m.w.now, m.made} }

// waited compares the time a call took with its limit: from its start, or from the latest disturbance
// of the clock and the process.
func (o *oracle) waited(l *life, what string, from start, most time.Duration) {
	if most < 0 || o.w.Rival || o.w.plan.maySpoil() { // a grant may begin years ahead of the clock
		return
	}
	took := time.Duration(o.w.now - max(from.at, l.m.calm))
	// Other callers of the process may have been faster: their ids were not available.
	most += time.Duration(l.m.made-from.made) * o.w.plan.layout.Unit()
	// A clock that was ahead may have led to a grant that begins ahead, within the tolerance if the store has a clock.
	if ahead := time.Duration(l.m.most - l.m.offset()); ahead > 0 {
		p := &o.w.plan
		if p.clock {
			ahead = min(ahead, 2*p.tolerance+2*p.serverSkew)
		}
		most += ahead + p.layout.Unit()
	}
	if p := &o.w.plan; p.source != "" { // it compares no clocks, and the worker had other holders before
		most += 2 * p.skew
	}
	// A steady clock that slept follows the wall clock only if that is persistently ahead.
	if l.steady {
		most += time.Duration(l.m.slept)
	}
	if allowed := most + most/16; took > allowed {
		o.find("wait", l.m, "%s took %v, and may take %v (%v)", what, took, allowed, l.config)
	}
}

// leastGrace is the minimum that newcomers wait for holders whose looks take no time.
const leastGrace = 9 * time.Second

// time compares the time in an id with the true time: it must not be further ahead than the clock ever
// was, plus the generator's lead.
func (o *oracle) time(l *life, id firn.ID, tick firn.Tick) {
	w, m := o.w, l.m
	now := w.trueTick()
	if tick > now+1 && l.lead >= 0 && !w.Rival {
		m.most = max(m.most, m.offset())
		lead := l.lead + l.lead/16 + 5*time.Millisecond
		if w.plan.clock {
			lead += max(0, w.plan.tolerance-leastGrace) // of a re-created pool
		}
		if most := w.tickAt(w.now + m.most + int64(lead)); tick > most {
			o.find("time", m, "id %s is %d ticks ahead of the true time, at most %d are to be", o.show(id), tick-now, most-now)
		}
	}
	if calm := max(m.calm, l.began); !l.lag && w.now-calm > int64(usualLag) {
		if least := w.tickAt(w.now + m.offset() - int64(lagAllowed)); tick < least-1 {
			o.find("time", m, "id %s is %d ticks behind the clock", o.show(id), least-tick)
		}
	}
}

// A steady clock that was behind the wall clock has followed it after usualLag, if callers request
// ids; lagAllowed is how much it may still lack then.
const (
	usualLag   = 3 * time.Minute
	lagAllowed = 3 * time.Second
)
