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

// A Generator makes the ids of one worker. Make one with [New] or [NewLeased]: the zero value is not
// usable. Do not copy it. Goroutines may share it. An id requested after
// another was received is greater than that one, except across a step back of the clock
// that the policy history or switch has served.
//
// The usual call is one clock reading and one atomic addition to the next position. It
// takes no lock. For everything else (a new tick, waiting, a clock that went back, the
// fence) the call takes a lock and asks the core. With [Config.Lag] most calls do not read
// the clock.
type Generator struct {
	cell     atomic.Pointer[cell]
	clock    ClockKind
	system   bool // Time is SystemTime: read it without a call through the interface
	unread   bool // the usual call reads no clock: with ClockVirtual, or Lag
	time     TimeSource
	switchTo func(ctx context.Context, from Tick) (Grant, error)
	retired  func(old, next int64, last Tick)
	atFence  func(ctx context.Context, at *FenceError) error
	layout   Layout
	dc       int64

	mu        sync.Mutex // guards all below
	core      core
	pace      pace
	steady    steady
	alone     bool  // without a fence: only the wall clock separates it from the worker's other lives
	highest   int64 // of a generator that is alone: the wall clock's latest reading,
	back      bool  // and whether that has gone back since
	closed    bool
	switching chan struct{} // closed when the switch in progress ends; nil without one
	refused   error         // why the latest switch failed; nil after one that succeeded
}

// A cell is the state that callers share while the generator has one worker: the word,
// which is the next position, and the limit up to which they may count it without asking
// the core. Each worker gets a new cell, so that no caller composes one worker's position
// with another's number.
//
// No position is issued twice from the word. While it is open, word and limit only grow. A
// caller reads limit first and adds second, and issues only positions below the limit it
// read. The core takes the word back by swapping in sealed, and counts the positions below
// min(word, limit) as used. All positions that callers issued are below that, since the
// limit they read was this one or a smaller one. If callers read limit after the addition,
// they could see a newer one, above a position that the core has meanwhile counted as
// unused.
type cell struct {
	_    [64]byte
	word atomic.Uint64 // alone on its cache line, since all callers write it
	_    [56]byte

	limit         atomic.Uint64
	opens, closes atomic.Int64 // the word may be used at clock readings between these, if calls read the clock

	recalls atomic.Uint64 // how often the blocks of Locals were recalled
	composer
}

// take takes up to n positions from the word: got of them, from p on. If ok is false, the
// word has no position left and the caller must ask the core.
func (c *cell) take(n uint64) (p, got uint64, ok bool) {
	limit := c.limit.Load() // before the addition: see cell
	if p = c.word.Add(n) - n; p < limit {
		return p, min(n, limit-p), true
	}
	return 0, 0, false
}

// next returns the position after those taken from the word. If open is false, the word is
// sealed and the core knows the next position.
func (c *cell) next() (position uint64, open bool) {
	word := c.word.Load()
	return min(word, c.limit.Load()), word < sealed
}

// sealed marks a word that may not be used. Limits go up to 1<<63, where a layout without
// worker bits ends, and additions may exceed them. sealed is far above both, and far
// enough from the maximum that additions cannot overflow it.
const sealed = uint64(3) << 62

// maxTake bounds the ids that one addition takes, and so how far a word can exceed
// its limit.
const maxTake = 1 << 30

// New returns a generator for worker, from 0 to [Layout.MaxWorker]. Two generators of one
// pool with the same worker make duplicate ids: lease the number (package lease) unless
// something else guarantees that it is unique.
//
// A restarted process must not make the same ids again. So the generator starts one tick
// and [Config.Lead] ahead of the clock, above all times the earlier process can have
// used. This is safe if the clock is not behind what the earlier process has read from it, a
// clock read by ClockSteady was not set back while that process ran, and that process had no
// greater lead. The first id waits for as long as the policy
// [RunAhead] allows. ClockVirtual is not safe across restarts without a bound (Ahead 0),
// since it may have run ahead any distance, nor with From, since it begins there each
// time. [NewLeased] is safe in all these cases. Errors match [ErrRange] or
// [ErrSyntax] and name every mistake.
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
		tick, ok := cfg.Layout.tickAt(saturatingAdd(now, int64(cfg.Lead())))
		switch {
		case !ok:
			return nil, &TimeExhaustedError{Layout: cfg.Layout, End: cfg.Layout.End()}
		case now < cfg.Layout.epoch:
			return nil, epochAhead(cfg.Layout, now)
		}
		after = tick
	}
	cfg.Unfenced = true
	return newGenerator(cfg, Grant{Worker: worker, After: after, Through: unbounded}), nil
}

// NewLeased returns a generator that issues the ids that grant allows. At the fence it
// fails with a *[FenceError] until [Generator.Extend] moves the fence. If ClockSteady is
// behind the grant's interval, the generator starts a tick and Ahead before the interval's
// beginning, and runs slower until the clock has caught up.
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
	cfg.Unfenced = cfg.Unfenced || grant.Through == unbounded
	return newGenerator(cfg, grant), nil
}

func newGenerator(cfg Config, grant Grant) *Generator {
	g := &Generator{
		clock: cfg.Clock, time: cfg.Time, switchTo: cfg.Switch, retired: cfg.Retired, atFence: cfg.AtFence,
		layout: cfg.Layout, dc: cfg.Datacenter,
		core: core{
			layout: cfg.Layout, clock: cfg.Clock, ahead: cfg.aheadNanos(), chain: slices.Clone(cfg.Rollback),
			start: cfg.Start, below: uint64(cfg.StartBelow), random: cfg.Random,
		},
	}
	_, g.system = cfg.Time.(systemTime)
	g.unread = cfg.Clock == ClockVirtual || cfg.Lag > 0
	g.pace.lag, g.pace.lapse = int64(cfg.Lag), g.lapse
	g.pace.timers, _ = cfg.Time.(timers) // checked if there is a Lag
	if p := cfg.Rollback.find(policyHistory); p.kind != 0 {
		g.core.history = newHistory(p.ticks)
	}
	mono, wall := g.clocks()
	g.alone, g.highest = cfg.Unfenced, wall
	if !g.alone { // see NewLeased
		wall = max(wall, g.core.reached(g.core.startOf(max(grant.After, 0)))) // no position lies in tick -1
	}
	g.steady = startSteady(mono, wall)
	g.install(grant, false)
	return g
}

// read returns the clock reading to compare with a cell's opens and closes: monotonic for
// ClockSteady, Unix ns for ClockWall. It runs for every id, so it does not check for overflow:
// past 2262 Unix ns wrap, which at worst lets callers use up an open cell.
func (g *Generator) read() int64 {
	switch {
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

// Next returns the next id. It waits when a burst has used up the sequence and Ahead,
// and when a policy of [Config.Rollback] requires it. If ctx ends a wait, the error matches
// ctx.Err() and [context.Cause]; an id that needs no wait is returned even if ctx has ended.
//
// Errors are *[ClockBackError], which wraps the error of [Config.Switch]; *[FenceError];
// *[TimeExhaustedError]; *[RangeError] if the clock has only shown times before the epoch;
// and [ErrClosed]. After all but [ErrClosed] the generator stays usable. With an error the
// id is 0.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	c := g.cell.Load()
	if !g.unread {
		if now := g.read(); now >= c.closes.Load() || now < c.opens.Load() {
			return g.nextSlowly(ctx)
		}
	}
	composer := c.composer // read before the addition, which would delay it
	if p, _, ok := c.take(1); ok {
		return composer.id(p), nil
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

// Take returns up to n ids at once, as a run: n of them if the sequence, Ahead and the
// fence allow that now, otherwise fewer; at least one and at most 1<<30. With [Config.Lag] it
// may also be fewer because the clock must be read first. It usually costs one atomic operation,
// however large n is. Errors are those of Next, and a *[RangeError]
// for n below 1.
func (g *Generator) Take(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, NewRangeError("number of ids", int64(n), 1, math.MaxInt64, "")
	}
	count := uint64(min(n, maxTake))
	c := g.cell.Load()
	if !g.unread {
		if now := g.read(); now >= c.closes.Load() || now < c.opens.Load() {
			return g.takeSlowly(ctx, count)
		}
	}
	if p, got, ok := c.take(count); ok {
		return Run{first: p, count: got, composer: c.composer}, nil
	}
	return g.takeSlowly(ctx, count)
}

// Fill fills ids and waits as Next does. It returns how many it has filled, and the
// error if not all.
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

func (g *Generator) takeSlowly(ctx context.Context, n uint64) (Run, error) {
	c, d, err := g.ask(ctx, n)
	if err != nil {
		return Run{}, err
	}
	return Run{first: d.first, count: d.count, composer: c.composer}, nil
}

// ask asks the core until it issues positions, and waits or switches workers as the core decides.
func (g *Generator) ask(ctx context.Context, n uint64) (*cell, decision, error) {
	var a attempt
	var fence *FenceError
	asked := false
	for {
		c, d, wait, busy := g.decide(n, &a)
		var err, ended error
		switch {
		case d.act == actIssue:
			return c, d, nil
		case d.tried:
			ended = g.try(ctx, wait, d.until, c)
		case d.act == actWait:
			wait = min(wait, longestWait)
			if d.full {
				a.waited += wait
			}
			ended = g.time.Sleep(ctx, wait)
		case busy != nil:
			ended = g.await(ctx, busy)
		case d.act == actSwitch:
			g.switchWorker(ctx, d.from, &a)
		case a.refusal != nil && ctx.Err() != nil && errors.Is(d.err, ErrClockBack):
			ended = context.Cause(ctx) // the switch may have failed only because ctx ended
		case asked && ctx.Err() != nil && errors.Is(d.err, ErrFence): // AtFence did not wait for the fence to move
			ended = context.Cause(ctx)
		case g.atFence != nil && errors.As(d.err, &fence):
			asked = true
			err = g.atFence(ctx, fence)
		default:
			err = d.err
		}
		if ended != nil {
			err = waitError(ctx, ended)
		}
		if err != nil {
			return nil, decision{}, err
		}
	}
}

// waitError is the error of a call whose wait has ended with err, [context.Cause] of ctx. It also matches
// ctx.Err(). The other packages have [turns.Ended]: this one imports only the standard library.
func waitError(ctx context.Context, err error) error {
	if of := ctx.Err(); of != nil && !errors.Is(err, of) {
		return fmt.Errorf("firn: wait for an id: %w: %w", of, err)
	}
	return fmt.Errorf("firn: wait for an id: %w", err)
}

// longestWait is how long a caller sleeps before it checks again whether the clock has
// been corrected or the generator has ended.
const longestWait = time.Second

// try is one try of the policy wait. It sleeps for d, but ends early if the clock shows
// until, if the generator has changed to another worker (cell c is replaced), or if the
// generator has ended.
func (g *Generator) try(ctx context.Context, d time.Duration, until int64, c *cell) error {
	for ; d > longestWait; d -= longestWait {
		if err := g.time.Sleep(ctx, longestWait); err != nil {
			return err
		}
		if g.over(until, c) {
			return nil
		}
	}
	return g.time.Sleep(ctx, d)
}

// over reports whether a try ends early.
func (g *Generator) over(until int64, c *cell) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed || g.cell.Load() != c || g.now() >= until
}

// await waits until done is closed or ctx ends. A simulated time source may implement
// this wait itself.
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

// decide takes the word back, asks the core and, if that is allowed, opens the word
// again. With actSwitch, busy is the switch in progress; if busy is nil, the caller must
// do the switch.
func (g *Generator) decide(n uint64, a *attempt) (c *cell, d decision, wait time.Duration, busy chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.cell.Load()
	if g.pace.lag > 0 { // another caller may have read the clock and opened the word meanwhile
		if p, got, ok := c.take(n); ok {
			return c, decision{act: actIssue, first: p, count: got, recalls: c.recalls.Load()}, 0, nil
		}
	}
	g.collect(c)
	if g.closed {
		return c, decision{err: ErrClosed}, 0, nil
	}
	now := g.now()
	d = g.core.step(now, n, a)
	switch d.act {
	case actIssue:
		if g.pace.lag > 0 {
			g.pace.taken += d.count
			g.pace.advance(now)
			if d.count > 1 { // perhaps a block of a Local
				g.pace.arm()
			}
		}
		d.recalls = c.recalls.Load()
		g.publish(c, d)
	case actWait:
		wait = time.Duration(saturatingSub(d.until, now))
		if d.until == never { // the clock may be wrong and be corrected
			wait = longestWait
		}
	case actSwitch:
		busy = g.switching
		if busy != nil {
			a.switched = false // the switch in progress is another call's, so this call may still do one
		} else {
			g.switching = make(chan struct{})
		}
	case actFail:
	}
	return c, d, wait, busy
}

// clocks reads both clocks for ClockSteady, the wall clock first. If the process pauses in
// between, the steady clock is then behind the wall clock until its next look. In the
// other order it would be ahead, and a restarted process with the same worker, which
// begins at the wall clock's time, would issue the same ids again.
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
		at := g.steady.at(mono)
		if g.alone {
			at = g.bounded(at)
		}
		return at
	case g.core.ahead < 0: // ClockVirtual without a bound
		return 0
	default:
		return unixNanos(g.time.Wall())
	}
}

// bounded keeps a ClockSteady without a fence within steadySlack of the wall clock, between two looks
// too: if a slewed wall clock is slower than the monotonic one, the next life of the worker, which
// begins [Config.Lead] above the wall, would otherwise repeat ids. If the wall clock went back, New
// promises nothing, and the clock goes on until the wall has caught up.
func (g *Generator) bounded(at int64) int64 {
	wall := unixNanos(g.time.Wall())
	limit := saturatingAdd(wall, steadySlack)
	g.back = at > limit && (g.back || wall < g.highest)
	if g.back {
		return at
	}
	g.highest = wall
	return min(at, max(limit, g.core.seenAt))
}

// used returns the time, in Unix ns, below which the steady clock must not go back.
func (g *Generator) used() int64 { return g.core.used(g.next()) }

// next returns the next position: the word's if it is open, else the core's.
func (g *Generator) next() uint64 {
	if next, open := g.cell.Load().next(); open {
		return next
	}
	return g.core.pos
}

// collect seals the word and updates the core with the positions taken from it.
func (g *Generator) collect(c *cell) {
	if word := c.word.Swap(sealed); word < sealed {
		g.core.pos = min(word, c.limit.Load())
		g.core.high = max(g.core.high, g.core.pos)
		g.pace.taken += g.core.pos - g.pace.from
	}
}

// revoke takes back the word and the blocks of Locals, so that no caller issues an id without the core.
func (g *Generator) revoke() {
	c := g.cell.Load()
	g.collect(c)
	c.recalls.Add(1)
}

// publish opens the word, so that callers need not ask the core, unless that would break
// the rules a cell relies on. Then every call asks the core.
func (g *Generator) publish(c *cell, d decision) {
	if !d.open || g.core.pos < g.core.high || d.limit < c.limit.Load() {
		return
	}
	limit, opens, closes := d.limit, d.opens, d.closes
	switch {
	case g.pace.lag > 0:
		limit = max(min(limit, g.core.pos+g.pace.mark), c.limit.Load()) // never lower than it was: see cell
		if g.core.pos >= limit {
			return
		}
		g.pace.from = g.core.pos
		g.pace.arm()
	case g.clock == ClockSteady:
		opens, closes = math.MinInt64, min(g.steady.when(closes), g.steady.next)
	}
	c.limit.Store(limit)
	c.opens.Store(opens)
	c.closes.Store(closes)
	c.word.Store(g.core.pos)
}

// install puts the generator under another grant.
func (g *Generator) install(grant Grant, ordered bool) {
	g.core.revoked = false
	g.core.reset(grant, ordered)
	c := &cell{composer: newComposer(g.layout, g.dc, grant.Worker)}
	c.word.Store(sealed)
	g.cell.Store(c)
}

// switchWorker executes the policy switch. The caller has set g.switching.
func (g *Generator) switchWorker(ctx context.Context, from Tick, a *attempt) {
	var grant Grant
	err := errors.New("Config.Switch panicked")
	defer func() { // also if switchTo panics, since other calls wait for its end
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.switching != nil { // otherwise Stop has closed it
			close(g.switching)
			g.switching = nil
		}
		g.switched(grant, err, a)
		if err == nil || ctx.Err() == nil { // otherwise it may have failed only because its caller left
			g.refused = err
		}
	}()
	if grant, err = g.switchTo(ctx, from); err == nil {
		err = checkGrant(g.layout, grant)
	}
}

// switched applies the result of a switch.
func (g *Generator) switched(grant Grant, err error, a *attempt) {
	if err == nil && !g.closed {
		g.revoke() // what is issued is certain then
	}
	switch {
	case err != nil:
		a.refusal = err
	case g.closed:
		// The grant stays unused: see Config.Switch.
	case grant.Worker == g.core.worker && grant.After < g.core.last():
		a.refusal = fmt.Errorf("%w: Config.Switch returned worker %d, which is in use, from tick %d on, and its ids go up to %d", ErrRange, grant.Worker, grant.After+1, g.core.last())
	default:
		g.replace(grant, false)
	}
}

func (g *Generator) replace(grant Grant, ordered bool) {
	g.revoke()
	worker, last := g.core.worker, g.core.last()
	g.install(grant, ordered)
	if g.retired != nil {
		g.retired(worker, grant.Worker, last)
	}
}

// Extend moves the fence of worker forward to tick through, after its lease was renewed. A
// fence never moves back: a lower tick changes nothing. The error matches [ErrRange] if
// the generator has another worker now or the tick is below -1. It is a *[FenceError]
// after Halt and [ErrClosed] after Stop.
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
	if g.core.revoked { // the renewal began before Halt
		return g.core.ended().err
	}
	g.core.extend(through)
	return nil
}

// Replace continues under another grant. Later ids are greater than all earlier ones. It
// calls [Config.Retired] for the old worker. Errors are *[RangeError] and [ErrClosed].
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

// Halt revokes the grant of worker at once: calls fail with a *[FenceError] until
// [Generator.Replace]. A lease halts when another holder may have the same ticks, or may get
// them. Halt returns the last tick that ids under the grant may carry, and whether the
// generator had that worker; if not, it does nothing.
func (g *Generator) Halt(worker int64) (last Tick, halted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || worker != g.core.worker {
		return 0, false
	}
	g.revoke()
	g.core.floor = g.core.ceiling // which leaves no position to issue
	g.core.revoked = true
	return g.core.last(), true
}

// Stop ends the generator: after it returns, no id is issued and calls fail with
// [ErrClosed]. It returns the current worker and the last tick that ids of it may carry.
// Later calls return the same.
func (g *Generator) Stop() (worker int64, last Tick) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revoke()
	g.closed = true
	if g.switching != nil { // calls that wait for it need not
		close(g.switching)
		g.switching = nil
	}
	return g.core.worker, g.core.last()
}

// A State is a snapshot of a generator.
type State struct {
	Worker int64
	Last   Tick // the last tick that ids issued so far may carry
	Fence  Tick // the last tick that ids may carry under the grant
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

// Check returns the error with which [Generator.Next] would fail now, or nil if it would return an
// id, perhaps after a wait. It does not wait, uses up no id and does not switch workers: where Next
// would do that, Check returns an error if the latest switch failed. It reads the clock: with
// [Config.Lag] Next may notice a step back only later. Health checks call it: it copies the record
// of the policy [History], 16 bytes per tick.
func (g *Generator) Check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	c := g.core // a copy decides, so that nothing changes
	c.history.ring = slices.Clone(c.history.ring)
	if next, open := g.cell.Load().next(); open {
		c.pos, c.high = next, max(c.high, next)
	}
	now := g.now()
	var a attempt
	d := c.step(now, 1, &a)
	if d.act == actSwitch && g.refused != nil {
		a.refusal = g.refused
		d = c.step(now, 1, &a)
	}
	return d.err
}

// Layout returns the layout of the ids.
func (g *Generator) Layout() Layout { return g.layout }

// Now returns the tick that the generator's clock shows. It is negative before the epoch,
// and at most the layout's last tick. With ClockVirtual it is the tick of the next id, or
// the layout's last tick if there is no next id.
func (g *Generator) Now() Tick {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock == ClockVirtual {
		next := max(g.next(), g.core.floor)
		return g.core.tickOf(min(next, g.core.endOf(g.layout.MaxTick())-1))
	}
	if g.clock == ClockSteady {
		// Fences depend on this reading, so it must not contain an old clock error.
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
