package sim

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/prefetch"
	"github.com/firn-id/firn/store"
)

const (
	pool     = "p"
	newcomer = "newcomer" // the host of the processes that start after all others have left
)

// A process runs on a machine: one life after the other.
type process interface {
	// run is the main task of a life, and ends soon after it was asked to leave.
	run(l *life)
}

// A life is a process from its start to its end.
type life struct {
	m       *machine
	number  int
	asked   bool // asked to leave
	left    chan struct{}
	kept    *lease.Lease // nil until it has a lease
	locals  []*local
	pinned  bool
	refused error // why its latest request for a worker failed
	last    error // the latest error of a call for ids, nil after one that succeeded

	serial     uint64 // among all lives
	began      int64
	granted    int64 // time of its latest grant
	datacenter int64
	grants     map[int64][]interval // by worker; nil: there are no grants
	virtual    bool                 // its clock is virtual
	steady     bool
	unread     bool    // calls read no clock, or read it under the lock
	ordered    bool    // later ids are greater
	most       firn.ID // the greatest returned

	patience time.Duration // limit of a call's duration
	lead     time.Duration // how far ids may be ahead of the clock; negative: any
	lag      bool          // ids may go back with the clock, or further
	closed   bool          // it has released everything, or is about to
	config   *config
}

// An interval is the range of ticks of a grant.
type interval struct{ after, through firn.Tick }

func newProcess(kind string, m *machine) process {
	switch kind {
	case "rival":
		return &rival{m: m}
	case "counting":
		return &counting{m: m}
	case "alone":
		return &alone{m: m}
	case "lent":
		if m.id < servers {
			return &lender{m: m}
		}
		return &borrower{m: m}
	}
	return &firnProcess{m: m}
}

// begin starts a life, unless one is running.
func (m *machine) begin() {
	switch {
	case m.w.ending:
		return
	case m.life != nil && m.life.asked: // it is about to end
		m.w.after(int64(time.Second), func() { m.begin() })
		return
	case m.life != nil:
		return
	}
	l := m.newLife()
	m.spawn(func() {
		m.proc.run(l)
		if m.life == l {
			m.life = nil
		}
	})
}

func (m *machine) newLife() *life {
	m.lives++
	m.w.lives++
	m.life = &life{m: m, serial: m.w.lives, number: m.lives, began: m.w.now, left: make(chan struct{}), grants: map[int64][]interval{}, most: -1}
	return m.life
}

// crash ends the life at once; another begins after a time.
func (m *machine) crash(later int64, same bool) {
	m.w.trace.say(m, "crashes")
	m.kill()
	m.frozen = 0
	m.life = nil
	if f, ok := m.proc.(*firnProcess); ok && !same {
		f.pinned = nil
	}
	m.w.after(later, func() { m.begin() })
}

// retire asks the life to end.
func (m *machine) retire() {
	if l := m.life; l != nil && !l.asked {
		l.asked = true
		if f, ok := m.proc.(*firnProcess); ok {
			f.leave(l)
		}
		close(l.left)
		m.notice()
	}
}

// firnProcess runs Firn as an embedding program does.
type firnProcess struct {
	m      *machine
	pinned *int64        // an identity that survives a crash
	look   time.Duration // of its lease, not of its pool
}

// random is the library's source of random numbers. In a large pool they are few, so that processes meet.
func (m *machine) random() uint64 {
	n := m.w.library.Uint64()
	if m.w.plan.crowded {
		return n%2*crowdApart + n/2%(crowd/2)
	}
	return n
}

// settings draws the program's configuration.
func (f *firnProcess) settings(l *life) lease.Config {
	w, r := f.m.w, f.m.w.choices
	p := &w.plan
	c := lease.Config{
		Store: f.m.client(), Pool: pool, Tolerance: p.tolerance, Look: p.slowestLook(), Strict: p.strict,
		Window: p.window, Log: slog.New(listener{f.m}), Host: "host", PID: 1, // containers may all look the same
	}
	if p.named {
		c.Host = f.m.name
	}
	f.look = p.look
	g := &c.Generator
	g.Layout, g.Time, g.Random = p.layout, f.m, f.m.random
	g.Datacenter = r.Int64N(p.layout.MaxDatacenter() + 1)
	l.datacenter = g.Datacenter
	g.Start = pick(r, firn.StartCarry, firn.StartCarry, firn.StartZero, firn.StartRandom)
	l.ordered, l.virtual, l.steady, l.pinned = true, false, false, false
	switch n := r.IntN(10); {
	case p.ahead > 0: // a newcomer expects no longer lead than its own
		g.Clock, g.Rollback = firn.ClockWall, firn.Rollback{firn.RunAhead(p.ahead)}
		if r.IntN(8) == 0 {
			g.Rollback = firn.Rollback{firn.RunAhead(4 * p.ahead)} // must be refused
		}
	case n < 4:
		l.steady = true
		g.Ahead = min(pick(r, 0, 0, -1, time.Second, maxLead), p.maxLead)
		if p.regime == Reasserted {
			g.Ahead = pick[time.Duration](r, 0, -1)
		}
	case n < 9 || p.strict > 0 || p.regime == Reasserted:
		g.Clock = firn.ClockWall
		g.Rollback = pick(r, chains...)
		if p.regime == Reasserted && strings.Contains(g.Rollback.String(), "ahead") {
			g.Rollback = nil
		}
		if p.strict > 0 && switches(g.Rollback) {
			g.Rollback = nil
		}
		for _, policy := range g.Rollback {
			switch policy.String()[:3] {
			case "his", "swi":
				l.ordered = false
			}
		}
		if r.IntN(4) == 0 && l.ordered && p.regime != Reasserted {
			g.Ahead = min(pick(r, 10*time.Millisecond, maxLead), p.maxLead)
		}
	default:
		g.Clock, l.virtual = firn.ClockVirtual, true
		g.Ahead = pick(r, 0, time.Second)
	}
	if p.strict == 0 && p.source == "" && g.Lead() > p.tolerance && (w.quiet || r.IntN(4) > 0) {
		g.Rollback, g.Ahead = nil, 0 // it would be refused
	}
	if p.source != "" && g.Lead() > time.Minute {
		g.Rollback, g.Ahead = nil, 0 // without a fence its first id waits for as long
	}
	l.drawLag(g)
	switch {
	case p.regime != Reasserted || p.look == 0:
	case r.IntN(8) == 0 && !w.quiet:
		c.Look = p.look / 2 // below the pool's look: must be refused
	case r.IntN(2) == 0: // more often than necessary
		f.look = p.look / 2
	}
	if worker := int64(f.m.id); worker <= p.layout.MaxWorker() && r.IntN(8) == 0 {
		f.pinned = &worker // no other process gets this number
	}
	if f.pinned != nil && r.IntN(2) == 0 && !w.quiet {
		for n := range p.workers() { // others take these too
			if n != *f.pinned && r.IntN(2) == 0 {
				c.Spares = append(c.Spares, n)
			}
		}
	}
	if f.pinned != nil && (len(c.Spares) > 0 || r.IntN(2) == 0 && !w.quiet && !switches(g.Rollback)) {
		c.Pinned, l.pinned = f.pinned, true
		c.PinnedAhead = r.IntN(2) == 0 && p.regime != Reasserted && p.strict == 0 // it takes over
	}
	l.bounds(&c, p)
	return c
}

// drawLag draws how far ids may lag behind the clock.
func (l *life) drawLag(g *firn.Config) {
	if g.Clock != firn.ClockVirtual {
		g.Lag = pick(stream(l.m.w.Seed+l.m.w.plan.again, streamLag<<32|l.serial), 0, 0, time.Millisecond, time.Second)
	}
	l.unread = g.Clock == firn.ClockVirtual || g.Lag > 0
}

// A local is a caller's [firn.Local].
type local struct {
	*firn.Local
	most firn.ID // the greatest returned
	busy bool    // its caller is within a call
}

// chains are the policies for a wall clock that goes back, each alone and some combined.
var chains = []firn.Rollback{
	nil,
	{firn.Refuse()},
	{firn.Wait(500*time.Millisecond, 2)},
	{firn.History(64, 100*time.Millisecond)},
	{firn.History(2000, 500*time.Millisecond)},
	{firn.RunAhead(50)},
	{firn.SwitchWorker()},
	{firn.Wait(time.Second, 3), firn.History(64, 100*time.Millisecond), firn.SwitchWorker(), firn.Refuse()},
	{firn.History(8, 0), firn.RunAhead(500)},
	{firn.RunAhead(5), firn.Wait(30*time.Second, 2)},
}

func (f *firnProcess) run(l *life) {
	w := f.m.w
	for tries := 0; !l.asked; {
		cfg := f.settings(l)
		l.config = (*config)(&cfg)
		w.trace.say(f.m, "starts: %v", l.config)
		source, err := f.source(l, cfg)
		if err != nil {
			w.oracle.find("settings", f.m, "%v", err)
			return
		}
		w.faults.reach(f.m, begun, true, &fate{})
		w.faults.reach(f.m, begun, false, &fate{})
		ctx, cancel := f.m.WithTimeout(context.Background(), joinPatience)
		from := f.m.start()
		kept, err := lease.Keep(ctx, source, lease.Config{Generator: cfg.Generator, Window: cfg.Window, Look: f.look, Log: cfg.Log})
		cancel()
		w.oracle.waited(l, "joining", from, joinPatience+slack)
		if err != nil {
			l.last = err
			w.trace.say(f.m, "cannot start: %v", err)
			w.oracle.documented(f.m, err)
			f.m.rest(l, seldom(w.choices, w.plan.retry<<min(tries, 1))) // a pool may be full for a long time
			tries++
			continue
		}
		tries, l.last, l.kept = 0, nil, kept
		f.live(l, kept)
	}
}

// joinPatience is how long a process tries to join before it starts over.
const joinPatience = 2 * time.Minute

// source returns the process's source of workers.
func (f *firnProcess) source(l *life, cfg lease.Config) (lease.Source, error) {
	if f.m.w.plan.source != "" {
		return &watched{&own{f.m, l}, l}, nil
	}
	slots, err := lease.NewSource(cfg)
	return &watched{slots, l}, err
}

// live issues ids until it is time to leave, and then closes.
func (f *firnProcess) live(l *life, kept *lease.Lease) {
	w := f.m.w
	others := w.choices.IntN(3)
	for range others {
		f.m.spawn(func() { f.call(l, kept, nil) })
	}
	var buffer *prefetch.Buffer[firn.ID]
	if w.choices.IntN(4) == 0 {
		var err error
		buffer, err = prefetch.New(prefetch.Config[firn.ID]{
			Source: kept, Size: 1 + w.choices.IntN(12), Refill: -1, Time: f.m, Random: f.m.random,
		})
		if err != nil { // the buffer refuses a refill of -1
			buffer, err = prefetch.New(prefetch.Config[firn.ID]{
				Source: kept, Size: 8, MaxAge: pick(w.choices, 0, time.Minute), Time: f.m, Random: f.m.random,
			})
		}
		if err != nil {
			w.oracle.find("settings", f.m, "%v", err)
		}
	}
	f.call(l, kept, buffer)
	if buffer != nil && w.choices.IntN(2) == 0 {
		w.oracle.documented(f.m, buffer.Close())
	}
	f.close(l)
	if buffer != nil {
		w.oracle.documented(f.m, buffer.Close())
	}
}

// close releases the worker, once.
func (f *firnProcess) close(l *life) {
	if l.closed {
		return
	}
	l.closed = true
	w := f.m.w
	ctx, cancel := f.m.WithTimeout(context.Background(), 30*time.Second)
	from := f.m.start()
	err := l.kept.Close(ctx)
	cancel()
	w.oracle.waited(l, "closing", from, time.Minute)
	w.trace.say(f.m, "has left: %v", err)
	w.oracle.documented(f.m, err)
	if _, err := l.kept.Next(ctx); !errors.Is(err, firn.ErrClosed) {
		w.oracle.find("order", f.m, "Next after Close: %v", err)
	}
	for _, local := range l.locals {
		if local.busy {
			continue
		}
		if _, err := local.Next(ctx); !errors.Is(err, firn.ErrClosed) {
			w.oracle.find("order", f.m, "Next of a Local after Close: %v", err)
		}
	}
}

// call requests ids like a program's callers, until it is time to leave.
func (f *firnProcess) call(l *life, kept *lease.Lease, buffer *prefetch.Buffer[firn.ID]) {
	w := f.m.w
	var ids [16]firn.ID
	own := &local{Local: kept.Local(), most: -1}
	l.locals = append(l.locals, own)
	for !l.asked {
		for range 1 + w.choices.IntN(6) {
			if l.asked {
				return
			}
			w.steps++
			n := w.choices.IntN(8)
			// The first clock reading of these calls happens without a lock.
			w.running.loose = n < 7 && !l.unread
			if n == 3 {
				f.askLocal(l, own)
			} else {
				f.ask(l, kept, buffer, n, ids[:])
			}
			w.running.loose = false
		}
		f.m.rest(l, seldom(w.choices, w.think()))
	}
}

// ask makes one of the possible calls for ids.
func (f *firnProcess) ask(l *life, kept *lease.Lease, buffer *prefetch.Buffer[firn.ID], n int, ids []firn.ID) {
	w := f.m.w
	before, from := l.most, f.m.start()
	switch {
	case n < 4:
		id, err := kept.Next(context.Background())
		f.got(l, before, err, id)
		w.oracle.waited(l, "Next", from, l.patience)
	case n < 5:
		d := time.Duration(w.choices.Int64N(int64(time.Second)))
		ctx, cancel := f.m.WithTimeout(context.Background(), d)
		id, err := kept.Next(ctx)
		cancel()
		f.got(l, before, err, id)
		w.oracle.waited(l, "Next", from, d+slack)
	case n < 7:
		run, err := kept.Take(context.Background(), 1+w.choices.IntN(len(ids)))
		f.got(l, before, err, run.AppendTo(ids[:0])...)
		w.oracle.waited(l, "Take", from, l.patience)
	case buffer != nil:
		if id, ok := buffer.TryNext(); ok {
			lag := l.lag
			l.lag = true // the id was made a while ago
			w.oracle.id(l, id)
			l.lag = lag
		}
	default:
		ctx, cancel := f.m.WithTimeout(context.Background(), time.Second)
		n, err := kept.Fill(ctx, ids[:1+w.choices.IntN(len(ids))])
		cancel()
		f.got(l, before, nil, ids[:n]...)
		f.failed(l, err)
		w.oracle.waited(l, "Fill", from, time.Second+slack)
	}
}

// askLocal takes some ids from a caller's Local. They increase, but may be smaller than those of other callers.
func (f *firnProcess) askLocal(l *life, own *local) {
	for range 1 + f.m.w.choices.IntN(24) {
		from := f.m.start()
		own.busy = true
		id, err := own.Next(context.Background())
		own.busy = false
		f.got(l, own.most, err, id)
		f.m.w.oracle.waited(l, "Next of a Local", from, l.patience)
		if err != nil {
			return
		}
		own.most = id
	}
}

// rest waits for a time, or until it is time to leave.
func (m *machine) rest(l *life, d int64) {
	if l.asked {
		return
	}
	t := m.w.running
	t.at(m.w.now + d)
	t.wait(context.Background(), l.left)
}

// got checks the result of a call. Before was the greatest id at its start.
func (f *firnProcess) got(l *life, before firn.ID, err error, ids ...firn.ID) {
	o := &f.m.w.oracle
	f.failed(l, err)
	if err != nil {
		for _, id := range ids {
			if id != 0 {
				o.find("error", f.m, "id %d together with the error %v", id, err)
			}
		}
		return
	}
	for _, id := range ids {
		if l.ordered && id <= before {
			o.find("order", f.m, "id %s after %s", o.show(id), o.show(before))
		}
		before = id
		o.id(l, id)
	}
	l.most = max(l.most, before)
}

func (f *firnProcess) failed(l *life, err error) {
	l.last = err
	if err != nil {
		f.m.w.trace.say(f.m, "%v", err)
		f.m.w.oracle.documented(f.m, err)
		if l.steady && errors.Is(err, firn.ErrClockBack) {
			f.m.w.oracle.find("error", f.m, "a steady clock that went back: %v", err)
		}
	}
}

// leave ensures that the lease is closed even if a caller waits for a clock, perhaps for hours.
func (f *firnProcess) leave(l *life) {
	f.m.spawn(func() {
		t := f.m.w.running
		t.at(f.m.w.now + int64(20*time.Second))
		t.wait(context.Background(), nil)
		if l.kept != nil {
			f.close(l)
		}
		if f.m.life == l {
			f.m.life = nil
		}
	})
}

// watched reports a source's grants to the oracle.
type watched struct {
	lease.Source
	l *life
}

func (s *watched) Acquire(ctx context.Context, ask func() lease.Ask) (firn.Grant, error) {
	g, err := s.Source.Acquire(ctx, ask)
	s.l.refused = err
	s.l.m.w.cover.failed(err)
	if err == nil {
		s.l.m.w.oracle.granted(s.l, g)
	}
	return g, err
}

func (s *watched) Renew(ctx context.Context, held firn.Grant, ask lease.Ask) (firn.Grant, error) {
	g, err := s.Source.Renew(ctx, held, ask)
	s.l.m.w.cover.failed(err)
	if err == nil {
		s.l.m.w.oracle.renewed(s.l, held, g)
	} else if !errors.Is(err, lease.ErrLost) && g != held {
		s.l.m.w.oracle.find("grant", s.l.m, "a renewal that failed returned another grant: %v", err)
	}
	return g, err
}

func (s *watched) Look(ctx context.Context, held firn.Grant) error {
	err := s.Source.Look(ctx, held)
	s.l.m.w.cover.failed(err)
	return err
}

func (s *watched) Release(ctx context.Context, held firn.Grant, last firn.Tick) error {
	s.l.m.w.oracle.released(s.l, held, last)
	return s.Source.Release(ctx, held, last)
}

// takeAll lets newcomers take every worker, after all processes have left.
func (m *machine) takeAll() {
	w := m.w
	if w.plan.process != "firn" || w.plan.source != "" || w.plan.ended(w) || w.plan.short {
		return
	}
	p := &w.plan
	done := false
	m.kill() // it may have been asked to leave while it waited for a worker
	l := m.newLife()
	m.spawn(func() {
		defer func() { done = true }()
		for datacenter := range p.layout.MaxDatacenter() + 1 {
			l.datacenter = datacenter
			for range p.workers() {
				c := lease.Config{
					Store: m.client(), Pool: pool, Tolerance: p.tolerance, Look: p.slowestLook(), Strict: p.strict, Host: newcomer, PID: 1,
					Generator: firn.Config{Layout: p.layout, Datacenter: datacenter, Time: m, Random: m.random},
				}
				slots, err := lease.NewSource(c)
				if err != nil {
					w.oracle.find("settings", m, "%v", err)
					return
				}
				now, err := p.layout.Tick(m.Wall())
				if err != nil {
					w.oracle.find("settings", m, "%v", err)
					return
				}
				var g firn.Grant
				for range 3 {
					g, err = (&watched{slots, l}).Acquire(context.Background(), func() lease.Ask { return lease.Ask{Now: now, From: now, Window: 1 << 20} })
					if err == nil || !errors.Is(err, store.ErrUnavailable) {
						break
					}
				}
				if err != nil {
					slot, lost := w.oracle.lost()
					if w.plan.maySpoil() {
						lost = !errors.Is(err, lease.ErrFull) && !errors.Is(err, lease.ErrClock)
					}
					if lost || !errors.Is(err, lease.ErrFull) && !w.plan.maySpoil() {
						w.oracle.find("progress", m, "worker %d of datacenter %d is lost for ever: %v", slot.Worker, slot.Datacenter, err)
					}
					return
				}
				w.trace.say(m, "a newcomer has worker %d", g.Worker)
			}
		}
	})
	for i := 0; !done && !w.oracle.stopped() && i < 1_000_000; i++ {
		if !w.step() {
			break
		}
	}
	if !done && !w.oracle.stopped() {
		w.oracle.find("progress", m, "newcomers make no progress")
	}
}
