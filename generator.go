package firn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Generator makes the ids of one worker. Its methods may be called from any
// number of goroutines; an id asked for after another was received is greater,
// except across a step of the clock that the policy history or switch served.
//
// The usual call is one clock reading and one atomic addition: the state is one
// word, the next position, which only grows. Everything else — a new tick,
// waiting, a clock that went back, the fence — is decided by the core under a
// lock, which the usual call never takes.
type Generator struct {
	cell     atomic.Pointer[cell]
	clock    ClockKind
	system   bool // Time is the machine's own: read it without a call through the interface
	time     TimeSource
	switchTo func(ctx context.Context, from Tick) (Grant, error)
	retired  func(old, next int64, last Tick)
	layout   Layout
	dc       int64

	mu        sync.Mutex // guards all below
	core      core
	steady    steady
	closed    bool
	halted    bool          // until another grant
	switching chan struct{} // closed when the switch in progress has ended; nil without one
}

// A cell is what callers share while one worker is used: the word they count
// with, and how far it may be used without asking the core. Another worker has
// a cell of its own, so that no caller composes one worker's position with the
// other's number.
//
// Why no position is issued twice from the word: while it is open it only
// grows, and limit only grows too. A caller reads limit first and adds after;
// it issues only what lies below the limit it read. The core takes the word
// back by swapping in sealed, and takes as used min(word, limit) — whatever
// callers issued lies below that, since the limit they read was this one or a
// smaller. (Read after the addition, the limit could be a newer one, above a
// position that the core has counted as unused meanwhile.)
type cell struct {
	_    [64]byte
	word atomic.Uint64 // the hot word stays alone on its cache line
	_    [56]byte

	limit         atomic.Uint64
	opens, closes atomic.Int64 // clock readings between which the word may be used
	composer
}

// take takes up to n positions from the word: got of them, from p on. Without ok, the
// word has no position left: ask the core.
func (c *cell) take(n uint64) (p, got uint64, ok bool) {
	limit := c.limit.Load() // before the addition: see above
	if p = c.word.Add(n) - n; p < limit {
		return p, min(n, limit-p), true
	}
	return 0, 0, false
}

// next returns the position after those taken from the word. Without open the word is
// sealed, and the core knows the next position.
func (c *cell) next() (position uint64, open bool) {
	word := c.word.Load()
	return min(word, c.limit.Load()), word < sealed
}

// sealed marks a word out of use. Limits go up to 1<<63, where a layout without
// worker bits ends, and additions may run past them: it lies far above both, and
// far enough from the end that additions cannot wrap it.
const sealed = uint64(3) << 62

// maxTake bounds the ids one addition takes, and with it how far a word can
// run past its limit.
const maxTake = 1 << 30

// New returns a generator of a worker, from 0 to what the layout's field holds. Two
// generators of one pool with equal numbers make equal ids: have the
// number leased (package lease) unless something else keeps them apart.
//
// So that a restart makes no id a second time, it starts just above the times
// an earlier life can have reached, provided that the clock has not gone back
// in between, and that the earlier life had no greater [Config.Lead]: one tick and
// the lead from now. A Virtual clock without a bound
// (Ahead 0) may have run ahead any distance, and one with From begins there each
// time: neither is safe across restarts. A leased generator ([NewLeased]) needs no
// such provisos. Errors match [ErrRange] or [ErrSyntax] and name every
// mistake.
func New(worker int64, cfg Config) (*Generator, error) {
	err := cfg.check()
	if most := cfg.Layout.MaxWorker(); worker < 0 || worker > most {
		err = errors.Join(err, NewRangeError("worker", worker, 0, most, "layout "+cfg.Layout.Bits()))
	}
	if err != nil {
		return nil, err
	}
	var after Tick
	if cfg.Clock == ClockVirtual {
		if cfg.From.IsZero() {
			cfg.From = cfg.Time.Wall().Add(cfg.Lead() + cfg.Layout.Unit())
		}
		start, err := cfg.Layout.Tick(cfg.From)
		if err != nil {
			return nil, err
		}
		after = start - 1
	} else {
		now := unixNanos(cfg.Time.Wall())
		tick, ok := cfg.Layout.tickAt(saturatingAdd(now, cfg.aheadNanos()))
		switch {
		case !ok:
			return nil, &TimeExhaustedError{Layout: cfg.Layout, End: cfg.Layout.End()}
		case now < cfg.Layout.epoch:
			return nil, epochAhead(cfg.Layout, now)
		}
		after = tick
	}
	return newGenerator(cfg, Grant{Worker: worker, After: after, Through: unbounded}), nil
}

// NewLeased returns a generator that issues what grant allows, and fails with
// a *[FenceError] beyond, until [Generator.Extend] moves the fence.
// With a Steady clock behind the grant's interval
// it starts where that begins and slows down until the clock has caught up.
func NewLeased(cfg Config, grant Grant) (*Generator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := checkGrant(cfg.Layout, grant); err != nil {
		return nil, err
	}
	if cfg.Clock == ClockVirtual {
		if cfg.From.IsZero() {
			cfg.From = cfg.Time.Wall()
		}
		start, err := cfg.Layout.Tick(cfg.From)
		if err != nil {
			return nil, err
		}
		grant.After = max(grant.After, start-1)
	}
	return newGenerator(cfg, grant), nil
}

func newGenerator(cfg Config, grant Grant) *Generator {
	g := &Generator{
		clock: cfg.Clock, time: cfg.Time, switchTo: cfg.Switch, retired: cfg.Retired,
		layout: cfg.Layout, dc: cfg.Datacenter,
		core: core{
			layout: cfg.Layout, clock: cfg.Clock, ahead: cfg.aheadNanos(), chain: slices.Clone(cfg.Rollback),
			start: cfg.Start, below: uint64(cfg.StartBelow), random: cfg.Random,
		},
	}
	_, g.system = cfg.Time.(systemTime)
	if p := cfg.Rollback.find(policyHistory); p.kind != 0 {
		g.core.history = newHistory(p.ticks)
	}
	mono, wall := g.clocks()
	if grant.Through != unbounded { // see NewLeased
		wall = max(wall, cfg.Layout.nanos(grant.After+1))
	}
	g.steady = startSteady(mono, wall)
	g.install(grant, false)
	return g
}

// read returns the reading that a cell's opens and closes are compared with:
// monotonic for Steady, Unix ns for Wall, nothing for Virtual. It is read for every
// id: one past 2262 wraps, which at worst uses up what an open cell allows anyway.
func (g *Generator) read() int64 {
	switch {
	case g.clock == ClockVirtual:
		return 0
	case g.clock == ClockWall && g.system:
		return time.Now().UnixNano()
	case g.clock == ClockWall:
		return g.time.Wall().UnixNano()
	case g.system:
		return int64(time.Since(started))
	default:
		return int64(g.time.Monotonic())
	}
}

// Next returns the next id. It waits while a burst has used up the sequence
// and Ahead, and as long as a policy of [Config.Rollback] says. Errors:
// *[ClockBackError], which wraps what [Config.Switch] returned, *[FenceError],
// *[TimeExhaustedError], *[RangeError] if the clock reads before the epoch and
// has shown nothing later, and [ErrClosed]; after any of them the generator stays
// usable (except closed). If ctx ends a wait, the error is [context.Cause] of it; an
// id that needs no wait is returned even if ctx has ended. Every error comes with the id 0.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	c := g.cell.Load()
	if now := g.read(); now < c.closes.Load() && now >= c.opens.Load() {
		if p, _, ok := c.take(1); ok {
			return c.id(p), nil
		}
	}
	return g.nextSlowly(ctx)
}

func (g *Generator) nextSlowly(ctx context.Context) (ID, error) {
	run, err := g.takeSlowly(ctx, 1)
	if err != nil {
		return 0, err
	}
	return run.id(run.first), nil
}

// Take takes up to n ids at once and returns them as a run: n of them if the
// sequence, Ahead and the fence allow that now, fewer if not, at least one and at
// most 1<<30. It is one atomic operation however large n is. Errors are those of
// Next, and a *[RangeError] for n below 1.
func (g *Generator) Take(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, NewRangeError("number of ids", int64(n), 1, math.MaxInt64, "")
	}
	count := uint64(min(n, maxTake))
	c := g.cell.Load()
	if now := g.read(); now < c.closes.Load() && now >= c.opens.Load() {
		if p, got, ok := c.take(count); ok {
			return Run{first: p, count: got, composer: c.composer}, nil
		}
	}
	return g.takeSlowly(ctx, count)
}

// Fill fills ids, waiting as Next does where they do not fit at once. It
// returns how many it has filled, and why not all.
func (g *Generator) Fill(ctx context.Context, ids []ID) (int, error) {
	filled := 0
	for filled < len(ids) {
		run, err := g.Take(ctx, len(ids)-filled)
		if err != nil {
			return filled, err
		}
		run.write(ids[filled:])
		filled += run.Len()
	}
	return filled, nil
}

// takeSlowly asks the core, and waits and switches as it says.
func (g *Generator) takeSlowly(ctx context.Context, n uint64) (Run, error) {
	var a attempt
	for {
		c, d, wait, busy := g.decide(n, &a)
		var err error
		switch {
		case d.act == actIssue:
			return Run{first: d.first, count: d.count, composer: c.composer}, nil
		case d.tried:
			err = g.try(ctx, wait, d.until, c)
		case d.act == actWait:
			err = g.time.Sleep(ctx, min(wait, longestWait)) // and ask again
		case busy != nil:
			err = g.await(ctx, busy)
		case d.act == actSwitch:
			g.switchWorker(ctx, &a)
		case a.refusal != nil && ctx.Err() != nil && errors.Is(d.err, ErrClockBack):
			err = context.Cause(ctx) // perhaps the only reason why the switch failed
		default:
			err = d.err
		}
		if err != nil {
			return Run{}, err
		}
	}
}

// longestWait is how long a caller sleeps before it checks again whether the clock
// was put right or the generator has ended.
const longestWait = time.Second

// try is one of the tries of the policy wait: it sleeps the whole time, unless the clock
// shows until before, or cell c has made way for another, whose worker need not wait.
// It lasts no longer than the generator.
func (g *Generator) try(ctx context.Context, d time.Duration, until int64, c *cell) error {
	for ; d > longestWait; d -= longestWait {
		if err := g.time.Sleep(ctx, longestWait); err != nil {
			return err
		}
		g.mu.Lock()
		over := g.closed || g.cell.Load() != c || g.now() >= until
		g.mu.Unlock()
		if over {
			return nil
		}
	}
	return g.time.Sleep(ctx, d)
}

// await waits until done is closed, or ctx ends. A simulated time source brings a
// way to wait of its own.
func (g *Generator) await(ctx context.Context, done <-chan struct{}) error {
	if s, ok := g.time.(interface {
		Wait(context.Context, <-chan struct{}) error
	}); ok {
		return s.Wait(ctx, done)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// decide takes the word back, asks the core and opens the word again if that is
// allowed. For actSwitch, busy is the switch already in progress; if it is nil the
// caller must do the switch.
func (g *Generator) decide(n uint64, a *attempt) (c *cell, d decision, wait time.Duration, busy chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.cell.Load()
	g.collect(c)
	if g.closed {
		return c, decision{err: ErrClosed}, 0, nil
	}
	now := g.now()
	d = g.core.step(now, n, a)
	switch d.act {
	case actIssue:
		g.publish(c, d)
	case actWait:
		wait = time.Duration(saturatingSub(d.until, now))
		if d.until == never { // the clock may be wrong, and put right
			wait = longestWait
		}
	case actSwitch:
		busy = g.switching
		if busy != nil {
			a.switched = false // another's attempt, not this call's
		} else {
			g.switching = make(chan struct{})
		}
	case actFail:
	}
	return c, d, wait, busy
}

// clocks reads both clocks for a Steady one. The wall comes first: a pause of the
// process in between then leaves the Steady clock behind the wall, until its next look.
// In the other order it would be ahead of the wall, and a restarted process with the
// same worker, which begins at the wall, would issue the same ids again.
func (g *Generator) clocks() (mono, wall int64) {
	wall = unixNanos(g.time.Wall())
	return int64(g.time.Monotonic()), wall
}

// now reads the clock for the core, in Unix ns.
func (g *Generator) now() int64 {
	switch {
	case g.clock == ClockSteady:
		mono := int64(g.time.Monotonic())
		if g.steady.due(mono) {
			var wall int64
			mono, wall = g.clocks()
			g.steady.look(mono, wall, g.used())
		}
		return g.steady.at(mono)
	case g.core.ahead < 0: // a virtual clock without a bound
		return 0
	default:
		return unixNanos(g.time.Wall())
	}
}

// used returns the time below which a Steady clock does not go back, in Unix ns.
func (g *Generator) used() int64 { return g.core.used(g.next()) }

// next returns the next position, which the core may not know yet.
func (g *Generator) next() uint64 {
	if next, open := g.cell.Load().next(); open {
		return next
	}
	return g.core.pos
}

// collect seals the word and tells the core how far it was used.
func (g *Generator) collect(c *cell) {
	if word := c.word.Swap(sealed); word < sealed {
		g.core.pos = min(word, c.limit.Load())
		g.core.high = max(g.core.high, g.core.pos)
	}
}

// publish opens the word for use without the core, unless that could break the rules
// a cell relies on. As long as it could, every call asks the core.
func (g *Generator) publish(c *cell, d decision) {
	if !d.open || g.core.pos < g.core.high || d.limit < c.limit.Load() {
		return
	}
	opens, closes := d.opens, d.closes
	if g.clock == ClockSteady {
		opens, closes = math.MinInt64, min(g.steady.when(closes), g.steady.next)
	}
	c.limit.Store(d.limit)
	c.opens.Store(opens)
	c.closes.Store(closes)
	c.word.Store(g.core.pos)
}

// install puts the generator under another grant.
func (g *Generator) install(grant Grant, ordered bool) {
	g.halted = false
	g.core.reset(grant, ordered)
	c := &cell{composer: newComposer(g.layout, g.dc, grant.Worker)}
	c.word.Store(sealed)
	g.cell.Store(c)
}

// switchWorker carries out the policy switch; the caller has set g.switching.
func (g *Generator) switchWorker(ctx context.Context, a *attempt) {
	g.mu.Lock()
	from := Tick(0)
	if tick, ok := g.layout.tickAt(g.now()); ok && tick > 0 {
		from = tick
	}
	g.mu.Unlock()

	var grant Grant
	err := errors.New("the source of workers panicked")
	defer func() { // also if switchTo panics: others wait for its end
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.switching)
		g.switching = nil
		g.switched(grant, err, a)
	}()
	if grant, err = g.switchTo(ctx, from); err == nil {
		err = checkGrant(g.layout, grant)
	}
}

// switched goes on after a switch, with its worker or without.
func (g *Generator) switched(grant Grant, err error, a *attempt) {
	switch {
	case err != nil:
		a.refusal = err
	case g.closed:
		// The grant is unused; the caller that closed the generator gives it back.
	default:
		g.replace(grant, false)
	}
}

func (g *Generator) replace(grant Grant, ordered bool) {
	g.collect(g.cell.Load())
	worker, last := g.core.worker, g.core.last()
	g.install(grant, ordered)
	if g.retired != nil {
		g.retired(worker, grant.Worker, last)
	}
}

// Extend moves the fence of worker forward to tick through: a renewed lease. A
// fence never moves back. The error is a *[RangeError] if the generator has
// another worker now or the tick is below -1, a *[FenceError] after Halt, and
// [ErrClosed] after Stop.
func (g *Generator) Extend(worker int64, through Tick) error {
	if err := checkFence(through); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	if worker != g.core.worker {
		return fmt.Errorf("%w: worker %d is not held here any more: the generator now has worker %d", ErrRange, worker, g.core.worker)
	}
	if g.halted { // a renewal that was under way
		return g.core.ended().err
	}
	g.core.extend(through)
	return nil
}

// Replace continues under another grant, without callers noticing: ids from now
// on are greater than those before. It calls [Config.Retired] for the old worker.
// Errors: *[RangeError], [ErrClosed].
func (g *Generator) Replace(grant Grant) error {
	if err := checkGrant(g.layout, grant); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	g.replace(grant, true)
	return nil
}

// Halt ends issuing under the grant of a worker at once: calls fail with a
// *[FenceError] until [Generator.Replace] brings another grant. It is for a holder
// that finds its ticks granted to another. It reports whether the generator had
// that worker; under another worker the generator goes on.
func (g *Generator) Halt(worker int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || worker != g.core.worker {
		return false
	}
	g.collect(g.cell.Load())
	g.core.floor = g.core.ceiling // nothing is left between them
	g.halted = true
	return true
}

// Stop ends the generator: once it returns, no further id is issued, and calls
// fail with [ErrClosed]. It returns the worker in use and the last tick ids of
// it may carry. Later calls return the same.
func (g *Generator) Stop() (worker int64, last Tick) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.collect(g.cell.Load())
	g.closed = true
	return g.core.worker, g.core.last()
}

// A State is a snapshot of a generator.
type State struct {
	Worker int64
	Last   Tick // the last tick that ids may carry so far
	Fence  Tick // no id is issued above
}

// State returns a snapshot, for metrics and logs.
func (g *Generator) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := State{Worker: g.core.worker, Last: g.core.last(), Fence: g.core.tickOf(g.core.ceiling) - 1}
	if next, open := g.cell.Load().next(); open {
		s.Last = g.core.tickOf(next - 1)
	}
	return s
}

// Layout returns the layout of the ids.
func (g *Generator) Layout() Layout { return g.layout }

// Now returns the tick that the generator's clock shows, which may lie before
// the epoch (negative) or at most at the layout's last tick. With a Virtual
// clock it is the tick of the next id, or the last tick if there is no next id.
func (g *Generator) Now() Tick {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock == ClockVirtual {
		next := max(g.next(), g.core.floor)
		return g.core.tickOf(min(next, g.core.endOf(g.layout.MaxTick())-1))
	}
	if g.clock == ClockSteady {
		// Fences are chosen by this reading: it must not keep a past clock error.
		mono, wall := g.clocks()
		g.steady.retreat(mono, wall, g.used())
	}
	tick, _ := g.layout.tickAt(g.now())
	return tick
}

// String describes the generator for logs.
func (g *Generator) String() string {
	s := g.State()
	return fmt.Sprintf("generator of worker %d, layout %s, clock %s", s.Worker, g.layout, g.clock)
}
