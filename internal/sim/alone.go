package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

// An alone process has a worker number of its own, perhaps with spares, and no store: only its clock,
// which is not behind at a restart, keeps its lives apart. After an orderly end it may also be as far
// behind as it was then, if Close has not said otherwise.
type alone struct {
	m      *machine
	source lease.Source // of the latest life, if that ended orderly and the process goes on; else nil
}

func (a *alone) run(l *life) {
	m, w := a.m, a.m.w
	l.grants = nil
	if behind := m.shown - m.wall(); behind >= 0 && a.source == nil { // a restart repeats ids unless the clock has caught up
		m.rest(l, behind+1)
		return
	}
	w.faults.reach(m, begun, true, &fate{})
	cfg := a.settings(l)
	m.starting = true
	next, end, err := a.begin(cfg)
	m.starting = false
	if err != nil {
		l.last = err
		w.oracle.documented(m, err)
		m.rest(l, seldom(w.choices, w.plan.retry))
		return
	}
	l.last = nil
	w.faults.reach(m, begun, false, &fate{})
	for !l.asked {
		for range 1 + w.choices.IntN(6) {
			w.steps++
			w.running.loose = !l.unread
			from := m.start()
			id, err := next(context.Background())
			w.running.loose = false
			w.oracle.waited(l, "Next", from, l.patience)
			if err != nil {
				l.last = err
				w.oracle.documented(m, err)
				continue
			}
			l.last = nil
			w.oracle.id(l, id)
		}
		m.rest(l, seldom(w.choices, w.think()))
	}
	end()
}

func (a *alone) settings(l *life) lease.Config {
	r, p := a.m.w.choices, &a.m.w.plan
	c := lease.Config{Window: p.window, Look: p.look}
	g := &c.Generator
	g.Layout, g.Time, g.Random = p.layout, a.m, a.m.w.library.Uint64
	g.Start = pick(r, firn.StartCarry, firn.StartZero, firn.StartRandom)
	// Every life needs at least the lead of its predecessors, which have reached as far ahead.
	of := stream(a.m.w.Seed, streamServers<<16|uint64(a.m.id))
	g.Ahead = pick(of, 0, -1, time.Second)
	switch walled := r.IntN(3) == 0; {
	case a.m.walled:
		g.Clock = firn.ClockWall
		if g.Rollback = pick(of, unswitched...); g.Ahead > 0 && strings.Contains(g.Rollback.String(), "history") {
			g.Ahead = -1
		}
		if a.m.w.plan.spares && len(a.spares()) > 0 {
			g.Rollback, g.Ahead = pick(of, switched...), -1
		}
		if g.Lead() > 5*time.Second { // each start would wait that long
			g.Rollback = nil
		}
	case walled:
		g.Ahead = g.Lead() // an earlier life on a steady clock had no more
		g.Clock = pick(r, firn.ClockWall, firn.ClockVirtual)
	}
	l.drawLag(g)
	l.bounds(&c, p)
	l.lead += g.Lead() + p.layout.Unit() // it begins above everything an earlier life can have reached
	if l.patience > 0 {
		l.patience += g.Lead() // Ahead hides a step back while the first id waits
	}
	l.config = (*config)(&c)
	return c
}

// unswitched are the chains of a generator that has one worker, and switched those of one with spares.
var (
	unswitched = slices.DeleteFunc(slices.Clone(chains), switches)
	switched   = append(slices.DeleteFunc(slices.Clone(chains), func(chain firn.Rollback) bool { return !switches(chain) }),
		firn.Rollback{firn.SwitchWorker(), firn.RunAhead(5)})
)

func switches(chain firn.Rollback) bool { return slices.Contains(chain, firn.SwitchWorker()) }

// spares are the numbers of a process beside its own, at most three. No other process has them.
func (a *alone) spares() (numbers []int64) {
	w := a.m.w
	for n := a.m.id + len(w.machines); int64(n) <= w.plan.layout.MaxWorker() && len(numbers) < 3; n += len(w.machines) {
		numbers = append(numbers, int64(n))
	}
	return numbers
}

// begin makes the generator, and returns its Next and what ends it.
func (a *alone) begin(cfg lease.Config) (next func(context.Context) (firn.ID, error), end func(), err error) {
	w := a.m.w
	spared := switches(cfg.Generator.Rollback)
	if !spared && w.choices.IntN(2) == 0 {
		gen, err := firn.New(int64(a.m.id), cfg.Generator)
		if err != nil {
			return nil, nil, err
		}
		w.trace.say(a.m, "starts without a lease: %v", (*config)(&cfg))
		return gen.Next, func() { gen.Stop() }, nil
	}
	source := a.source
	switch {
	case source != nil:
	case spared:
		source = lease.Fixed(int64(a.m.id), a.spares()...)
	default:
		source = lease.Fixed(int64(a.m.id))
	}
	kept, err := lease.Keep(context.Background(), source, cfg)
	if err != nil {
		return nil, nil, err
	}
	a.source = nil // a crash forgets it
	w.trace.say(a.m, "starts with a fixed worker and the spares %v: %v", a.spares(), (*config)(&cfg))
	return kept.Next, func() { a.end(kept, source, spared) }, nil
}

// end closes a lease. If it returns no error, a restart repeats no id from the clock's present time on. The
// process may also go on, with what its source knows.
func (a *alone) end(kept *lease.Lease, source lease.Source, spared bool) {
	m, w := a.m, a.m.w
	shown, clean := m.shown, false
	m.shown = 0 // Close reads the clock
	defer func() {
		if !clean { // also after a crash
			m.shown = max(m.shown, shown)
		}
	}()
	err := kept.Close(context.Background())
	clean = err == nil
	back := m.wall() < shown && err != nil && strings.Contains(err.Error(), "start no process with its numbers before")
	if _, after := kept.Next(context.Background()); err != nil && !back || !errors.Is(after, firn.ErrClosed) {
		w.oracle.find("order", m, "Close of a fixed worker: %v, Next after it: %v", err, after)
	}
	w.trace.say(m, "ends its lease: %v", err)
	if spared && w.choices.IntN(3) == 0 {
		a.source = source
	}
}
