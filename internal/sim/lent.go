package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// With [Options.Lent] programs make ids with workers that servers lend them, by docs/leases.md. The first machines are
// the servers.
const servers = 3

// lends makes a history one of servers and programs.
func (p *plan) lends(o *Options) {
	if !o.Lent || p.process != "firn" || p.strict > 0 || p.source != "" {
		return
	}
	r := stream(o.Seed, streamLent)
	p.process, p.ahead = "lent", 0
	p.machines = servers + 2 + r.IntN(5) + p.late
	p.window = pick(r, p.window, 4*time.Second, 10*time.Second)
	if r.IntN(2) == 0 {
		p.layout = layoutOf(pick(r, smallLayouts...)) // programs want the same workers
	}
	p.look = min(p.look, time.Second) // servers have the default, so that a request lasts as long as newcomers wait
	if p.regime == Reasserted {       // the programs of a server that is paused count as cut off
		for _, k := range []kind{pause, atClock, suspend} {
			p.never[k] = true
		}
	}
}

// longestWindow is how far ahead a fence may lie.
func (p *plan) longestWindow() time.Duration {
	if p.process == "lent" {
		return max(2*p.window, firstGrant+p.tolerance)
	}
	return p.window
}

// firstGrant is what a program is granted before its first renewal.
const firstGrant = 10 * time.Second

// A lender is a server.
type lender struct {
	m     *machine
	cfg   lease.Config
	loans map[string]*lease.Loan // those of its present life
}

func (s *lender) run(l *life) {
	w, p := s.m.w, &s.m.w.plan
	l.grants = nil
	s.loans = map[string]*lease.Loan{}
	s.cfg = lease.Config{
		Store: s.m.client(), Pool: pool, Tolerance: p.tolerance, Look: p.slowestLook(), Host: "server", PID: 1,
		Window: pick(w.choices, p.window, p.window, 2*p.window),
	}
	g := &s.cfg.Generator
	g.Layout, g.Time, g.Random = p.layout, s.m, s.m.random
	g.Datacenter = w.choices.Int64N(p.layout.MaxDatacenter() + 1)
	w.trace.say(s.m, "starts as a server, window %v", s.cfg.Window)
	for !l.asked {
		s.m.rest(l, int64(time.Minute))
	}
}

// An answer is one of docs/leases.md, in ticks.
type answer struct {
	handle              string
	datacenter, worker  int64
	clock, after, fence firn.Tick
}

// serve answers a request, as the lending of package issuing does: for a new lease, or the one with a handle of which the program knows
// a fence. It ends when the program does not wait any more.
func (s *lender) serve(handle string, known firn.Tick, limit time.Duration) (answer, error) {
	ctx, cancel := s.m.WithTimeout(context.Background(), limit)
	defer cancel()
	if handle == "" {
		cfg, loans := s.cfg, s.loans // those of the next life may be there before the answer
		loan, g, err := lease.Lend(ctx, cfg, firstGrant)
		if err != nil {
			return answer{}, err
		}
		loans[loan.Handle()] = loan
		return answer{loan.Handle(), cfg.Generator.Datacenter, g.Worker, loan.Clock(), g.After, g.Through}, nil
	}
	if s.m.w.choices.IntN(40) == 0 {
		s.loans = map[string]*lease.Loan{} // as after a restart
	}
	loans, loan := s.loans, s.loans[handle]
	if loan == nil {
		var err error
		if loan, err = lease.NewLoan(s.cfg, handle); err != nil {
			return answer{}, err
		}
	}
	do := loan.Look
	if loan.Due(known) {
		do = loan.Renew
	}
	fence, err := do(ctx, known)
	if loan.Held() >= 0 {
		loans[handle] = loan
	}
	return answer{handle: handle, clock: loan.Clock(), fence: fence}, err
}

// A borrower is a program.
type borrower struct {
	m      *machine
	at     int // the server that it asks
	failed int // requests in a row
	b      *borrowed
	keeps  bool
}

// A borrowed worker is the state of docs/leases.md.
type borrowed struct {
	l            *life // one for each lease: no two may have the same ticks
	answer             // of the request for it; fence is the latest
	p            int64 // the last position used
	shown, since int64 // a clock, and when it showed that
	asked        int64 // when the last request that counts was sent
	renewed      bool
}

// clock returns the present position.
func (b *borrower) clock() int64 {
	return b.b.shown + (b.m.monotonic()-b.b.since)/int64(b.unit())*b.size()
}

func (b *borrower) unit() time.Duration { return b.m.w.plan.layout.Unit() }
func (b *borrower) size() int64         { return b.m.w.plan.layout.MaxSequence() + 1 }

func (b *borrower) run(l *life) {
	w := b.m.w
	l.grants, b.b, b.at, b.failed = nil, nil, w.choices.IntN(servers), 0
	b.keeps = true
	b.m.spawn(func() { b.keep(l) })
	for !l.asked {
		for range 1 + w.choices.IntN(6) {
			w.steps++
			b.next()
		}
		b.m.rest(l, seldom(w.choices, w.think()))
	}
	for b.keeps {
		_ = b.m.Sleep(context.Background(), time.Second)
	}
}

// next makes an id, if it may.
func (b *borrower) next() {
	g := b.b
	if g == nil || b.late(b.m.monotonic()) {
		return
	}
	clock, size := b.clock(), b.size()
	q := max(g.p+1, clock)
	if q >= int64(g.fence+1)*size || q/size > clock/size {
		return
	}
	g.p = q
	id, err := b.m.w.plan.layout.Compose(firn.Parts{Tick: firn.Tick(q / size), Datacenter: g.datacenter, Worker: g.worker, Sequence: q % size})
	if err != nil {
		b.m.w.oracle.find("id", b.m, "%v", err)
	}
	b.m.w.oracle.id(g.l, id)
}

// late reports whether the background has not run in time.
func (b *borrower) late(now int64) bool {
	return now-b.b.asked > int64(max(b.look(), 3*time.Second)+3500*time.Millisecond)
}

// keep takes leases and renews them until it is time to leave. Nothing is sent then.
func (b *borrower) keep(l *life) {
	r := b.m.w.choices
	for !l.asked {
		began := b.m.w.now
		pause := b.turn(l)
		if r.IntN(8) == 0 {
			b.at = r.IntN(servers) // as through a balancer
		}
		if !b.m.w.quiet && r.IntN(40) == 0 {
			pause += time.Duration(r.Int64N(int64(time.Minute))) // the background had no turn
		}
		if left := int64(pause) - (b.m.w.now - began); left > 0 {
			b.m.rest(l, left)
		}
	}
	b.b, b.keeps = nil, false
}

// turn takes a lease or renews it, and returns when to do it again.
func (b *borrower) turn(l *life) time.Duration {
	w := b.m.w
	if b.b != nil && b.clock() >= int64(b.b.fence+1)*b.size() {
		b.b = nil // it is over
	}
	g := b.b
	if g == nil {
		a, err := b.ask("", -1, 35*time.Second)
		if l.last = err; err != nil {
			return b.elsewhere()
		}
		b.take(l, a)
		return b.look()
	}
	asked := b.m.monotonic()
	a, err := b.ask(g.handle, g.fence, 2*time.Second)
	if l.last = err; err == nil || !b.late(b.m.monotonic()) {
		g.asked = asked
	}
	switch {
	case errors.Is(err, lease.ErrLost):
		w.trace.say(b.m, "stops: %v", err)
		return b.stop()
	case err != nil:
		return b.elsewhere()
	}
	here, there := b.clock(), int64(a.clock)*b.size()
	switch {
	case there > here:
		g.shown, g.since = there, b.m.monotonic()
	case here-there > int64(10*time.Second/b.unit())*b.size():
		w.trace.say(b.m, "stops: its clock shows %d, and that of the server %d", here/b.size(), a.clock)
		return b.stop()
	}
	g.renewed, b.failed = true, 0
	through := max(g.fence, a.fence)
	w.oracle.renewed(g.l, firn.Grant{Worker: g.worker, After: g.after, Through: g.fence}, firn.Grant{Worker: g.worker, After: g.after, Through: through})
	g.fence = through
	return b.look()
}

func (b *borrower) look() time.Duration {
	return min(b.m.w.plan.slowestLook(), b.m.w.plan.longestLook())
}

// stop ends the use of a lease.
func (b *borrower) stop() time.Duration {
	pause := time.Duration(0)
	if !b.b.renewed {
		pause = time.Second
	}
	b.b = nil
	return pause
}

// elsewhere turns to the next server, at once unless all have failed.
func (b *borrower) elsewhere() time.Duration {
	b.at = (b.at + 1) % servers
	if b.failed++; b.failed%servers > 0 {
		return 0
	}
	return time.Second
}

// take begins a lease.
func (b *borrower) take(l *life, a answer) {
	w := b.m.w
	own := *l
	w.lives++
	own.serial, own.datacenter, own.grants = w.lives, a.datacenter, map[int64][]interval{}
	own.lead, own.lag = -1, true // its clock is that of servers
	w.oracle.granted(&own, firn.Grant{Worker: a.worker, After: a.after, Through: a.fence})
	b.b = &borrowed{l: &own, answer: a, p: int64(a.after+1)*b.size() - 1, shown: int64(a.clock) * b.size(), since: b.m.monotonic(), asked: b.m.monotonic()}
	b.failed = 0
}

var errNoAnswer = fmt.Errorf("%w: no answer", store.ErrUnavailable)

// ask sends a request to a server.
func (b *borrower) ask(handle string, known firn.Tick, limit time.Duration) (a answer, err error) {
	m, w := b.m, b.m.w
	t := w.running
	server := w.machines[b.at]
	turn, answered := t.turn+1, false
	arrive := func() {
		s, there := server.proc.(*lender)
		if server.life == nil || !there || s.loans == nil {
			return
		}
		server.spawn(func() {
			got, failed := s.serve(handle, known, limit)
			if w.faults.strikes(lostAnswer) {
				return
			}
			w.after(w.travel(), func() {
				if m.cut > w.now || t.turn != turn || t.ended {
					return
				}
				a, err, answered = got, failed, true
				t.wake()
			})
		})
	}
	if !w.faults.strikes(lostRequest) && m.cut <= w.now {
		w.after(w.travel(), arrive)
		if w.faults.strikes(echo) {
			w.after(w.faults.duration(time.Minute), arrive)
		}
	}
	t.at(w.now + int64(limit))
	t.wait(context.Background(), nil)
	if !answered {
		err = errNoAnswer
	}
	if err != nil {
		w.trace.say(m, "asks %s: %v", server.name, err)
		w.oracle.documented(m, err)
	}
	return a, err
}
