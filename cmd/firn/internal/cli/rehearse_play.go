package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// rehearsal configures [rehearse].
type rehearsal struct {
	Generator firn.Config // without Time, Switch and Retired
	Script    clockScript
	Every     time.Duration // the time between two calls
	Start     time.Time     // of the clock
	Workers   int           // how many workers it may have, from 0 on
}

// maxRehearsedCalls bounds how many calls rehearse makes.
const maxRehearsedCalls = 1_000_000

// check returns an error for settings that rehearse cannot use.
func (cfg *rehearsal) check() error {
	if calls := cfg.Script.lasts() / cfg.Every; calls >= maxRehearsedCalls {
		return firn.NewRangeError("number of calls", int64(calls), 1, maxRehearsedCalls, "a shorter script or a lower rate makes fewer")
	}
	if l := cfg.Generator.Layout; cfg.Workers < 1 || int64(cfg.Workers) > l.MaxWorker()+1 {
		return firn.NewRangeError("number of workers", int64(cfg.Workers), 1, l.MaxWorker()+1, "layout "+l.Bits())
	}
	return nil
}

// What a call got.
const (
	gotIssued   = "issued"   // an id of the clock's time
	gotWaited   = "waited"   // the same, after a wait of more than the layout's unit
	gotHistory  = "history"  // an id of a time that the worker had passed already
	gotAhead    = "ahead"    // an id of a time ahead of the clock
	gotBehind   = "behind"   // an id of a time behind the clock
	gotSwitched = "switched" // an id of another worker than before
	gotRefused  = "refused"  // an error
	gotWaiting  = "waiting"  // nothing: it still waited when the script ended
)

// A rehearsalRow is one line of the timeline: an act of the clock, or calls in a row that got the same.
type rehearsalRow struct {
	After  time.Duration // since the start, of the first call
	Clock  time.Time     // that it showed then
	Act    string        // what the clock did; empty for calls
	Calls  int
	Got    string
	Worker int64         // of the ids
	Wait   time.Duration // the longest of these calls
	Off    time.Duration // with gotAhead and gotBehind: how far at most
	Err    error         // with gotRefused: the first
}

// A rehearsalResult is how a script went.
type rehearsalResult struct {
	Rows                []rehearsalRow
	Calls, IDs, Refused int
	Switches            int
	LongestWait         time.Duration
	Duplicates          int
	Strip               []string // what each call got, the most notable of each of some equal parts of the time
}

// rehearse plays a script. It makes a call every so often, each after the one before has its answer.
func rehearse(ctx context.Context, cfg rehearsal) (rehearsalResult, error) {
	if err := cfg.check(); err != nil {
		return rehearsalResult{}, err
	}
	p := &play{
		cfg: cfg, clock: firntest.NewClock(cfg.Start), rate: 1, last: make([]firn.Tick, cfg.Workers),
		seen: map[firn.ID]bool{}, most: map[int64]firn.ID{}, strip: newStrip(cfg.Script.lasts(), cfg.Every),
	}
	for i := range p.last {
		p.last[i] = -1
	}
	g := cfg.Generator
	g.Time, g.Switch, g.Retired = stage{p.clock, p}, p.other, p.retired
	g.Random = rand.New(rand.NewPCG(1, 2)).Uint64 // each play is the same
	tick, err := g.Layout.Tick(cfg.Start)
	if err != nil {
		return rehearsalResult{}, err
	}
	generator, err := firn.NewLeased(g, firn.Grant{Worker: 0, After: tick - 1, Through: g.Layout.MaxTick()})
	if err != nil {
		return rehearsalResult{}, err
	}
	p.ended = p.pass(0)
	for due := time.Duration(0); !p.ended && ctx.Err() == nil; due = max(due+cfg.Every, p.clock.Monotonic()) {
		if left := due - p.clock.Monotonic(); left > 0 {
			if p.ended = p.pass(left); p.ended {
				break
			}
		}
		p.call(ctx, generator)
	}
	p.result.Strip = p.strip.marks
	return p.result, context.Cause(ctx)
}

// A play is a script under way.
type play struct {
	cfg    rehearsal
	clock  *firntest.Clock
	acts   int           // how many have begun
	until  time.Duration // when the present one ends
	rate   float64       // of the clock, when it does not stand still
	ended  bool
	worker int64       // in use
	last   []firn.Tick // of each worker: the last tick that its ids may carry
	seen   map[firn.ID]bool
	most   map[int64]firn.ID // the greatest id of each worker
	strip  strip
	result rehearsalResult
}

// A stage is the clock of the generator: while that sleeps, the script goes on.
type stage struct {
	*firntest.Clock
	play *play
}

// errEnded ends a wait at the end of the script.
var errEnded = errors.New("the script has ended")

// Sleep implements [firn.TimeSource].
func (s stage) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.play.ended = s.play.pass(d); s.play.ended {
		return errEnded
	}
	return nil
}

// pass lets d pass, and begins the acts that are due then. It reports whether the script has ended.
func (p *play) pass(d time.Duration) (ended bool) {
	for end := p.clock.Monotonic() + d; ; {
		for p.clock.Monotonic() >= p.until {
			if p.acts == len(p.cfg.Script) {
				return true
			}
			p.begin(p.cfg.Script[p.acts])
			p.acts++
		}
		left := min(end, p.until) - p.clock.Monotonic()
		if left <= 0 {
			return false
		}
		p.clock.Pass(left)
	}
}

// begin begins an act.
func (p *play) begin(a clockAct) {
	if a.Verb != "run" || p.acts > 0 && p.cfg.Script[p.acts-1].Verb == "stop" { // a run goes without saying, except after a stop
		p.result.Rows = append(p.result.Rows, rehearsalRow{After: p.clock.Monotonic(), Clock: p.clock.Wall(), Act: a.String()})
	}
	p.until += a.lasts()
	switch a.Verb {
	case "back":
		p.clock.Step(-a.For)
	case "forward":
		p.clock.Step(a.For)
	case "drift":
		p.rate = 1 + a.Drift/100
	}
	if a.Verb == "stop" {
		p.clock.Rate(0)
	} else {
		p.clock.Rate(p.rate)
	}
}

// other is [firn.Config.Switch]: the first worker whose earlier ids all lie before the clock's time. A lease
// finds one in a store in the same way.
func (p *play) other(_ context.Context, from firn.Tick) (firn.Grant, error) {
	for n, last := range p.last {
		if int64(n) != p.worker && last < from {
			return firn.Grant{Worker: int64(n), After: from - 1, Through: p.cfg.Generator.Layout.MaxTick()}, nil
		}
	}
	return firn.Grant{}, fmt.Errorf("none of the %d workers is free at the clock's time", len(p.last))
}

// retired is [firn.Config.Retired].
func (p *play) retired(old, next int64, last firn.Tick) {
	p.last[old] = last
	p.worker = next
	p.result.Switches++
}

// call makes one call and records what it got.
func (p *play) call(ctx context.Context, g *firn.Generator) {
	row := rehearsalRow{After: p.clock.Monotonic(), Clock: p.clock.Wall(), Calls: 1}
	before := p.worker
	id, err := g.Next(ctx)
	row.Wait, row.Worker = p.clock.Monotonic()-row.After, p.worker
	l := p.cfg.Generator.Layout
	off := id.Time(l).Sub(p.clock.Wall())
	switch {
	case errors.Is(err, errEnded):
		row.Got = gotWaiting
	case err != nil:
		row.Got, row.Err = gotRefused, err
		p.result.Refused++
	case p.worker != before:
		row.Got = gotSwitched
	case off > 0:
		row.Got, row.Off = gotAhead, off
	case id < p.most[p.worker]:
		row.Got = gotHistory
	case -off >= 2*l.Unit():
		row.Got, row.Off = gotBehind, -off
	case row.Wait > l.Unit(): // less is usual, once a tick's sequence is used up
		row.Got = gotWaited
	default:
		row.Got = gotIssued
	}
	if err == nil {
		p.issued(id)
	}
	p.result.Calls++
	p.result.LongestWait = max(p.result.LongestWait, row.Wait)
	p.strip.mark(row)
	p.add(row)
}

// issued records an id.
func (p *play) issued(id firn.ID) {
	p.result.IDs++
	if p.seen[id] {
		p.result.Duplicates++
	}
	p.seen[id] = true
	p.most[p.worker] = max(p.most[p.worker], id)
}

// add adds a call to the timeline: to the row before if that got the same. A worker's first calls after a
// switch stand with the switch.
func (p *play) add(row rehearsalRow) {
	if n := len(p.result.Rows) - 1; n >= 0 {
		last := &p.result.Rows[n]
		same := last.Got == row.Got && row.Got != gotSwitched || last.Got == gotSwitched && row.Got == gotIssued
		if same && last.Worker == row.Worker {
			last.Calls++
			last.Wait, last.Off = max(last.Wait, row.Wait), max(last.Off, row.Off)
			return
		}
	}
	p.result.Rows = append(p.result.Rows, row)
}
