// Package lease takes a worker for a generator automatically and keeps it, safely beside other
// processes, whatever their clocks, crashes and networks do.
//
//	l, err := lease.Open(ctx, lease.Config{Store: s})
//	...
//	defer l.Close(context.WithoutCancel(ctx))
//	id, err := l.Next(ctx)
//
// A lease is a promise about the times inside the ids, not about when they are made. A slot in the
// store has a fence, and the holder may issue ids with times up to it. Only moving the fence by
// compare-and-swap grants more. The argument is in docs/protocol.md.
//
// Use it where several processes make ids and no one may number them by hand. Do not use it if each
// process has a fixed number already ([firn.New]), if ids must be small (package segment) or in order
// over all processes (package sequence).
//
// A lease does not detect that a virtual machine was cloned while its process runs. Both clones issue
// the same ids until the first of them looks at its slot.
package lease

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/outage"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// Config configures [Open]. [Keep] has its own source of workers, and uses only Generator, Window,
// Look and Log.
type Config struct {
	// Store keeps the pool. Required.
	Store store.Store
	// Pool is its name. Ids of one pool are never equal; those of two pools may be. Use one pool for all ids that meet
	// in one table or index. Default: "default".
	Pool string

	// Generator configures how ids are made. Its Layout must be the same for all members of the pool,
	// and workers are taken under its Datacenter. Its Lead is at most Tolerance, except in a strict pool.
	// Leave out Switch, Retired and AtFence: the lease sets them.
	Generator firn.Config

	// Window is how far ahead the fence is set. It is moved when half of the window is left. So ids continue for at least
	// half a window after the store goes away, less a look and half a second (and less four times Tolerance in a strict
	// pool). A crashed holder's worker stays unused for a window (plus twice Tolerance, in stores that are not embedded).
	// Window is rounded up to whole units. 100ms to 30 days. Default: 5m.
	Window time.Duration
	// Look is the longest time between two looks of a holder at its slot: 25ms to a quarter of Window, or to 3s: a holder
	// with a shorter Window looks four times in it. It must be the same for all members, as a wiped store does not know it.
	// Default: 3s.
	//
	// A call of a look ends after four looks, and after 2s at most. If the store may have forgotten holders, newcomers
	// wait until each has looked: the grace, 12s by default, and longer if ticks are long. If no look has counted for 6.5s,
	// by default, since the process was stopped or its clock jumped ahead, calls wait for the next one, which begins at once.
	Look time.Duration
	// Tolerance is how far the clock here may differ from the store's, or lie behind that of the other
	// holders. It must be the same for all members. Up to 30 days. Default: 10s.
	Tolerance time.Duration
	// Strict is how long a claim waits, plus Tolerance, before it is used and written again. This is
	// safe even if the store has lost a claim (wiped, set back to an older copy, failed over) whose
	// holder was paused or cut off. The least value is the longest window of the pool, its generators'
	// lead, four times Tolerance and two units together. It is the same for all members. Windows are
	// then at least sixteen times Tolerance and four units. It needs a store with a clock. Zero: no such wait.
	Strict time.Duration

	// Pinned, if set, is the only worker that may be taken, beside Spares. After an outage longer than Window, it is
	// free twice Tolerance after its fence, for its last holder too, and perhaps a grace later.
	Pinned *int64
	// Spares are workers to take while Pinned, and those before in the list, are held: at the start, after a
	// loss, and for the policy switch. They are not reserved: another process may hold one. Pinned is
	// required with them.
	Spares []int64
	// PinnedAhead takes the pinned worker at once while its fence lies ahead, as after a crash, and
	// issues times above the fence, ahead of the clock. The previous holder must have ended: otherwise,
	// if the store forgets this claim, both issue equal ids until they look. Without PinnedAhead,
	// Acquire reads the slot every 1 to 2 seconds until it is free, as long as its context lasts, unless
	// a spare is. Not allowed in a strict pool.
	PinnedAhead bool

	// Host and PID are recorded for operators only. Default: those of this process.
	Host string
	PID  int

	// Log receives what an operator should know: why a newcomer waits, data losses of the store, failed
	// renewals. A record with the attribute "for" or "until" announces a wait. Default: nothing.
	Log *slog.Logger
}

const (
	defaultLook = 3 * time.Second
	// minWindow is less than two calls of any store take.
	minWindow = 100 * time.Millisecond
	minLook   = minWindow / 4
	maxWindow = 30 * 24 * time.Hour
	maxStrict = 2 * maxWindow // room for the longest window and its margins
	// callTimeout bounds one exchange with the store in the background.
	callTimeout = 10 * time.Second
)

// A Lease is a generator whose worker is kept in the background. Make one with [Open] or [Keep]: the zero value is not
// usable. Do not copy it. Its methods may run concurrently.
type Lease struct {
	source  Source
	traits  Traits // of source
	gen     *firn.Generator
	cfg     Config
	window  firn.Tick
	overdue time.Duration // how long the generator may go without a look; 0: up to the fence

	mu        sync.Mutex       // guards all below; never held while waiting
	grant     firn.Grant       // of the worker in use
	left      []pendingRelease // workers left that are not released yet
	state     State
	outage    outage.Outage
	lost      bool                 // State.Losses counts the loss that the last turn found
	overlap   firn.Grant           // the last that State.Overlaps counts
	spare     map[int64]firn.Grant // granted for a switch that is not installed yet
	closing   bool
	parted    bool               // Close has put all workers into left
	counted   int                // how many looks have counted
	looked    chan struct{}      // closed when callers that wait for a look should see whether they may go on
	waiting   bool               // calls wait for a look that begins later
	hurry     func()             // ends the pause before the next look
	hurries   bool               // the latest look counted: calls that wait may hurry the next
	switching context.CancelFunc // ends a call for an id that takes another worker
	settled   context.CancelFunc // ends calls that keep the worker, or search for another, once there is another

	// Used only by the background goroutine.
	warnAt time.Duration // tellEnd logs when no more than this is left
	began  time.Duration // when the latest look began, or the claim, by the monotonic clock

	cancel context.CancelFunc
	done   chan struct{} // closed when the background goroutine has ended
	end    turns.Ending
}

// Open joins the pool, takes a worker and keeps it until Close. The ctx bounds only the joining. Over a store that is not
// embedded it waits for the grace (12s, see Config.Look) if the pool is new or its store may have forgotten holders, twice
// if that happens meanwhile: a shorter ctx never succeeds, so give it 30s or more. In a strict pool it waits for Strict and
// Tolerance too. It does not wait for a worker while all are held, except for a Pinned one. Errors: mistakes in cfg, with
// their fields, *[PoolError], *[FullError], *[ClockError], [store.ErrForeign], *[firn.TimeExhaustedError] and the store's.
func Open(ctx context.Context, cfg Config) (*Lease, error) {
	source, err := newPoolSource(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Log = source.cfg.Log.With("pool", source.cfg.Pool) // the lines of slots name it themselves
	return keep(ctx, source, cfg)
}

// Check returns all mistakes that [Open] would find before its first call of a store, if there is one.
func (cfg Config) Check() error {
	source, err := configure(cfg)
	if err == nil {
		_, err = prepare(source, cfg)
		return err
	}
	cfg.Look, cfg.Generator.Datacenter = 0, 0 // configure has reported these
	_, further := prepare(nil, cfg)
	return errors.Join(err, further)
}

// Keep is [Open] over any source of workers. It refuses settings of a pool: the source knows its own.
func Keep(ctx context.Context, source Source, cfg Config) (*Lease, error) {
	if err := config.RequiredArgument("lease", "the source of Keep", source); err != nil {
		return nil, err
	}
	for i, given := range reflect.VisibleFields(reflect.TypeOf(cfg)) {
		if !slices.Contains([]string{"Generator", "Window", "Look", "Log"}, given.Name) && !reflect.ValueOf(cfg).Field(i).IsZero() {
			return nil, config.Mistake("lease", given.Name, "belongs to the source of Keep: leave it out, or call Open")
		}
	}
	return keep(ctx, source, cfg)
}

func keep(ctx context.Context, source Source, cfg Config) (*Lease, error) {
	l, err := start(ctx, source, cfg)
	if err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	turns.Go(l.cfg.Generator.Time, func() { l.run(background) })
	return l, nil
}

// prepare checks all settings and fills in the defaults; it makes no call of the store.
func prepare(source Source, cfg Config) (*Lease, error) {
	g := &cfg.Generator
	if g.Switch != nil || g.Retired != nil || g.AtFence != nil || g.Unfenced {
		return nil, config.Mistake("lease", "Generator", "has Switch, Retired, AtFence or Unfenced, which a lease sets itself: leave them out")
	}
	g.Layout, g.Rollback = cmp.Or(g.Layout, firn.DefaultLayout()), slices.Clone(g.Rollback)
	config.Fill(&g.Time, &g.Random, &cfg.Log)
	cfg.Window = cmp.Or(cfg.Window, defaultWindow)
	unit := g.Layout.Unit()
	cfg.Look = cmp.Or(cfg.Look, defaultLook)
	quarter := max(cfg.Window, unit) / 4
	window := firn.Tick(cfg.Window/unit) + 1
	err := errors.Join(
		config.In("Window", config.Check("window", cfg.Window, minWindow, maxWindow, "it is renewed when half of it is left")),
		config.In("Look", config.Check("look", cfg.Look, minLook, max(quarter, defaultLook), "a quarter of the window, or the default")))
	cfg.Look = min(cfg.Look, quarter)
	l := &Lease{source: source, cfg: cfg, window: window, spare: map[int64]firn.Grant{}, warnAt: endsSoon, looked: make(chan struct{}), hurry: func() {}, switching: func() {}, hurries: true, done: make(chan struct{})}
	g = &l.cfg.Generator
	g.Switch, g.Retired, g.AtFence = l.switchWorker, l.retired, l.atFence
	if source != nil { // only Check has none
		l.traits = source.Traits()
	}
	g.Unfenced = !l.traits.Fences
	if _, test := turns.Idle(g.Time); !test && g.Clock != firn.ClockVirtual { // tests move such a clock faster than looks can begin
		l.overdue = l.traits.Overdue
	}
	if _, made := firn.NewLeased(*g, firn.Grant{After: -1, Through: 0}); made != nil {
		err = errors.Join(err, made)
	}
	if err != nil {
		return nil, err
	}
	if l.traits.Fit != nil {
		if err := l.traits.Fit(cfg); err != nil {
			return nil, err
		}
	}
	_, err = g.Layout.Tick(g.Time.Wall())
	return l, err
}

// start acquires a worker and makes the generator; no goroutine runs yet.
func start(ctx context.Context, source Source, cfg Config) (*Lease, error) {
	l, err := prepare(source, cfg)
	if err != nil {
		return nil, config.Of[Config]("lease", err)
	}
	g, log := &l.cfg.Generator, l.cfg.Log
	first := func() Ask { return l.newAsk(0) }
	if g.Clock == firn.ClockVirtual {
		if g.From.IsZero() {
			g.From = g.Layout.Time(first().Now) // not the time of the claim, which is later
		}
		from, err := g.Layout.Tick(g.From)
		if err != nil {
			return nil, err
		}
		if !cfg.Generator.From.IsZero() {
			first = func() Ask {
				ask := l.newAsk(0)
				ask.From = from
				return ask
			}
		}
	}
	var window firn.Tick
	l.began = g.Time.Monotonic()
	if l.grant, window, err = l.acquire(ctx, first); err != nil {
		return nil, err
	}
	granted := l.aboveEarlier(l.allowed(l.grant, window), first)
	if l.gen, err = firn.NewLeased(*g, granted); err != nil {
		return nil, errors.Join(err, l.unused(ctx, l.grant))
	}
	log.Info("worker leased", "worker", l.grant.Worker, "fence", l.fenceTime(l.grant))
	begins := g.Layout.Time(granted.After + 1)
	if g.Clock == firn.ClockVirtual && g.From.After(begins) {
		begins = g.From
	}
	if begins.Sub(g.Time.Wall()) > time.Second {
		log.Warn("ids carry times ahead of the clock until it has caught up", "from", begins)
	}
	l.tellEnd()
	return l, nil
}

// maxCatchUps bounds how often a late first grant is renewed at once.
const maxCatchUps = 8

// acquire takes a worker with more than half a window left. A claim's fence is chosen before the claim
// is sent, so behind a queue of writers a short window may be over when it is granted. Then acquire
// renews it at once, and extends the window by the store's delay. It also renews if the clock went back
// meanwhile: a renewal compares the clock with the store's. It also returns the window that was asked for.
func (l *Lease) acquire(ctx context.Context, first func() Ask) (firn.Grant, firn.Tick, error) {
	before, window := first(), l.window
	wider := func() Ask {
		ask := first()
		ask.Window = window
		return ask
	}
	grant, err := l.source.Acquire(ctx, wider)
	for try := 0; err == nil && try < maxCatchUps; try++ {
		ask := first()
		back := ask.Now < before.Now
		if l.traits.Fences {
			ask.From = ask.Now // the lead was asked for
		}
		ask.From = max(before.From, ask.From)
		before = ask
		if grant.Through-ask.From > l.window/2 && !back {
			break
		}
		window = l.window + 2*max(ask.From+window-grant.Through, 0)
		ask.Window = window
		held := grant
		if grant, err = l.source.Renew(ctx, held, ask); err != nil {
			released := l.unused(ctx, held) // if that fails, the worker stays unused until its fence
			if errors.Is(err, ErrLost) {
				grant, err = l.source.Acquire(ctx, wider)
			}
			if err != nil {
				err = errors.Join(err, released)
			}
		}
	}
	return grant, window, err
}

// Next is [firn.Generator.Next]. If it fails with [firn.ErrFence], the text of the error also says why the latest look
// at the slot failed, as State().Err does.
func (l *Lease) Next(ctx context.Context) (firn.ID, error) { return l.gen.Next(ctx) }

// Take is [firn.Generator.Take].
func (l *Lease) Take(ctx context.Context, n int) (firn.Run, error) { return l.gen.Take(ctx, n) }

// Fill is [firn.Generator.Fill].
func (l *Lease) Fill(ctx context.Context, ids []firn.ID) (int, error) { return l.gen.Fill(ctx, ids) }

// Layout is that of the pool.
func (l *Lease) Layout() firn.Layout { return l.cfg.Generator.Layout }

// Local is [firn.Generator.Local]: it belongs to one goroutine, and two that share one get equal ids.
func (l *Lease) Local() *firn.Local { return l.gen.Local() }

// Close stops the generator and releases its worker, and workers left whose release failed. From its beginning
// on no id is issued. The ctx bounds the calls of the store: if they fail, the worker stays unused until its
// fence, or until another Close succeeds. Concurrent calls are safe, and wait for each other.
func (l *Lease) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closing = true
	l.switching()
	l.mu.Unlock()
	return l.end.Do(ctx, l.cfg.Generator.Time, "lease: wait for another Close", func() error {
		l.gen.Stop()
		l.wake()
		l.cancel()
		late := turns.Wait(ctx, l.cfg.Generator.Time, l.done)
		if late != nil && l.traits.Ended != nil { // what it says must be known, and such a source has no store to wait for
			further, cancel := turns.WithTimeout(context.WithoutCancel(ctx), l.cfg.Generator.Time, patience(l.cfg.Look))
			defer cancel()
			if turns.Wait(further, l.cfg.Generator.Time, l.done) == nil {
				late = nil
			}
		}
		if late != nil {
			err := turns.Ended(ctx, "lease: wait for the look under way", late)
			l.mu.Lock()
			grant := l.grant
			l.mu.Unlock()
			l.unreturned(grant, err)
			return err
		}
		return l.leave(ctx)
	})
}

func (l *Lease) unreturned(grant firn.Grant, err error) {
	l.cfg.Log.Warn("could not give a worker back: it stays unused until its fence, unless another Close succeeds", "worker", grant.Worker, "fence", l.fenceTime(grant), "error", err)
}

// leave releases all workers held or left, each until that succeeds: a later call must not release what another lease has
// by then. The background has ended.
func (l *Lease) leave(ctx context.Context) error {
	worker, last := l.gen.Stop()
	l.mu.Lock()
	if !l.parted {
		l.left = l.pendingReleases()
	}
	grant := l.grant
	for at, unused := range l.spare {
		if unused.Worker != worker {
			l.left = append(l.left, pendingRelease{unused, unused.After})
		} else {
			grant = unused
		}
		delete(l.spare, at)
	}
	if !l.parted && grant.Worker == worker {
		l.left = append(l.left, pendingRelease{grant, last})
	}
	due := l.left
	l.left, l.parted = nil, true
	l.mu.Unlock()
	var err error
	var again []pendingRelease
	defer func() { // also after a panic of the source
		l.mu.Lock()
		l.left = slices.Concat(again, due, l.left)
		l.mu.Unlock()
	}()
	for ; len(due) > 0; due = due[1:] {
		if e := l.release(ctx, due[0]); e != nil {
			l.unreturned(due[0].grant, e)
			err = errors.Join(err, e)
			again = append(again, due[0])
		}
	}
	if l.traits.Ended != nil {
		err = errors.Join(err, l.traits.Ended(l.newAsk(0).From))
	}
	return err
}
