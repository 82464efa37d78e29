package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// SlotsConfig is what [NewSlots] makes a [Source] of.
type SlotsConfig struct {
	// Store is where the pool is kept.
	Store store.Store
	// Pool is its name. Default: "default".
	Pool string
	// Layout of the pool. Default: [firn.DefaultLayout]. All who join must have the same.
	Layout firn.Layout
	// Datacenter is the number under which workers are taken.
	Datacenter int64

	// Pinned, if set, is the only worker to take.
	Pinned *int64
	// PinnedAhead says what to do while the fence of the pinned worker lies
	// ahead, as it does after a crash: take it at once and issue times above
	// the fence, which lie ahead of the clock. Otherwise Acquire waits until
	// the fence has passed, as long as its context lasts. Not in a strict pool.
	PinnedAhead bool

	// Tolerance is how far the clock here may differ from the store's, or lie
	// behind that of the other holders. Default: 10s.
	Tolerance time.Duration
	// Grace is how long a pool made anew grants nothing, so that holders of an
	// earlier life, before the store was wiped, can re-assert their slots; more
	// than a look. Default: 5s, and none in a store that is embedded. Negative: none.
	Grace time.Duration
	// Strict has a claim wait that long before anything is issued under it, and
	// then look whether it still stands: safe even where the store has lost a claim
	// (wiped, set back to an older copy, failed over) whose holder was paused or cut
	// off and so does not know. It must be no less than the longest window of the
	// pool, its generators' lead and Tolerance together, and all who join must have
	// the same; the pool remembers it. Windows are then four times Tolerance at
	// least. Zero: no such wait.
	Strict time.Duration

	// Time is read for the wall clock and waited on. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random draws tokens, slots and backoff. Default: math/rand/v2.
	Random func() uint64
	// Log receives what keeps a newcomer waiting. Default: nothing.
	Log *slog.Logger
	// Host and PID are recorded for operators; nothing depends on them.
	// Default: this process's.
	Host string
	PID  int
}

// Slots is Firn's lease protocol over a store: a [Source] that never grants a
// tick of a worker twice.
//
// A slot holds a fence. To grant or renew, the fence is moved from F to F' by
// compare-and-swap, and the grant is (F, F']. Compare-and-swap orders all moves
// of one slot, so the intervals are disjoint; no clock, time-out or network
// takes part in that argument. A write whose answer was lost is read back
// before anything is granted.
//
// Its methods may be called concurrently.
type Slots struct {
	cfg   SlotsConfig
	token string

	mu     sync.Mutex // guards all below; never held while waiting
	writes uint64
	held   map[int64]holding
	starts map[int64]firn.Tick // where the latest claim of a worker here began
}

// A holding is what is known of a slot held here.
type holding struct {
	revision store.Revision
	after    firn.Tick // the start of the grant; no two claims of a worker here have the same
	fence    firn.Tick // the highest that was confirmed
	since    time.Time
}

const (
	defaultTolerance = 10 * time.Second
	defaultGrace     = 5 * time.Second
	defaultWindow    = 5 * time.Minute

	// maxTries bounds how often Acquire reads the pool anew after a conflict or
	// a lost answer.
	maxTries = 64
	// maxReadBacks bounds how often a lost answer is asked after.
	maxReadBacks = 4
	// backoff is the mean wait after the first conflict; it doubles up to maxBackoff.
	backoff    = 2 * time.Millisecond
	maxBackoff = 250 * time.Millisecond
)

// NewSlots checks cfg and returns a source over its store. It does not touch
// the store yet.
func NewSlots(cfg SlotsConfig) (*Slots, error) {
	if cfg.Pool == "" {
		cfg.Pool = "default"
	}
	if cfg.Layout.IsZero() {
		cfg.Layout = firn.DefaultLayout()
	}
	if cfg.Tolerance == 0 {
		cfg.Tolerance = defaultTolerance
	}
	if embedded, ok := cfg.Store.(store.Embedded); cfg.Grace == 0 && (!ok || !embedded.Embedded()) {
		cfg.Grace = defaultGrace
	}
	if cfg.Time == nil {
		cfg.Time = firn.SystemTime()
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.PID == 0 {
		cfg.PID = os.Getpid()
	}
	if cfg.Host == "" {
		// A host without a name is no reason not to make ids.
		if host, err := os.Hostname(); err == nil {
			cfg.Host = host
		}
	}
	var errs []error
	if cfg.Store == nil {
		errs = append(errs, firn.NewSyntaxError("store", "", "SlotsConfig.Store is required"))
	}
	errs = append(errs, CheckPool(cfg.Pool))
	if cfg.Strict < 0 || cfg.Strict > 2*maxWindow {
		errs = append(errs, &firn.RangeError{What: "strict wait", Value: cfg.Strict.String(), Min: "0s", Max: (2 * maxWindow).String()})
	}
	if d, most := cfg.Datacenter, cfg.Layout.MaxDatacenter(); d < 0 || d > most {
		errs = append(errs, firn.NewRangeError("datacenter", d, 0, most, "layout "+cfg.Layout.Bits()))
	}
	if cfg.Pinned != nil {
		if w, most := *cfg.Pinned, cfg.Layout.MaxWorker(); w < 0 || w > most {
			errs = append(errs, firn.NewRangeError("worker", w, 0, most, "layout "+cfg.Layout.Bits()))
		}
	}
	if cfg.Strict > 0 && cfg.PinnedAhead {
		errs = append(errs, firn.NewSyntaxError("worker", "taken ahead of its fence", "in a strict pool no id may carry a time ahead: wait for the fence"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Slots{
		cfg:   cfg,
		token: newToken(cfg.Random),
		held:  map[int64]holding{}, starts: map[int64]firn.Tick{},
	}, nil
}

// newToken draws what tells a process from all others. Its host name and process
// id do not: containers have the same ones.
func newToken(random func() uint64) string { return fmt.Sprintf("%016x%016x", random(), random()) }

// Acquire implements [Source]: it joins the pool, making it if it is new, and
// claims the slot idle longest. Errors: *[PoolError], *[FullError],
// *[ClockError], [ErrForeign], *[firn.TimeExhaustedError], and the store's.
func (s *Slots) Acquire(ctx context.Context, ask Ask) (firn.Grant, error) {
	var last error
	for try := 0; try < maxTries; try++ {
		if try > 0 && !errors.Is(last, errMade) && !errors.Is(last, errHeld) {
			if err := s.pause(ctx, try); err != nil {
				return firn.Grant{}, errors.Join(err, last)
			}
		}
		pool, checked, err := s.joinOnTime(ctx)
		if errors.Is(err, errAgain) {
			last = err
			continue
		}
		if err == nil {
			ask, err = s.present(ask, checked)
		}
		if err != nil {
			return firn.Grant{}, err
		}
		if ask.Now >= s.cfg.Layout.MaxTick() {
			return firn.Grant{}, &firn.TimeExhaustedError{Layout: s.cfg.Layout, End: s.cfg.Layout.End()}
		}
		slot, err := s.pick(ctx, pool, ask)
		if err != nil && !errors.Is(err, errAgain) {
			return firn.Grant{}, err
		}
		if err == nil {
			var grant firn.Grant
			if grant, err = s.claim(ctx, pool, slot, ask); err == nil {
				return grant, nil
			}
		}
		if !errors.Is(err, errAgain) {
			return firn.Grant{}, err
		}
		if errors.Is(err, errHeld) {
			try = 0 // its holder may renew for ever; the wait ends with ctx
		}
		last = err
	}
	return firn.Grant{}, fmt.Errorf("lease: no slot of pool %q after %d tries: %w", s.cfg.Pool, maxTries, last)
}

// joinOnTime joins and compares clocks, at the same time where the store has one.
func (s *Slots) joinOnTime(ctx context.Context) (Pool, reading, error) {
	if _, ok := s.cfg.Store.(store.Clock); !ok {
		pool, err := s.join(ctx)
		here := s.read()
		if err == nil {
			err = s.checkOthers(pool, here)
		}
		return pool, here, err
	}
	var (
		here     reading
		clockErr error
	)
	checked := make(chan struct{})
	turns.Go(s.cfg.Time, func() {
		defer close(checked)
		here, clockErr = s.checkClock(ctx)
	})
	pool, err := s.join(ctx)
	// The check ends with ctx by itself; waiting for less would be a race.
	if waitErr := turns.Wait(context.WithoutCancel(ctx), s.cfg.Time, checked); waitErr != nil {
		return pool, here, waitErr
	}
	if clockErr != nil {
		return pool, here, clockErr
	}
	return pool, here, err
}

// errAgain marks what reading the pool anew may mend. What does so at once is
// errMade: the pool's record was written; and errHeld: the fence of a pinned worker
// was waited for.
var (
	errAgain = errors.New("others were quicker")
	errHeld  = fmt.Errorf("its fence was waited for: %w", errAgain)
	errMade  = fmt.Errorf("the pool was made: %w", errAgain)
)

// pause waits before another try: exponential, with jitter.
func (s *Slots) pause(ctx context.Context, try int) error {
	d := min(backoff<<min(try-1, 16), maxBackoff)
	d = d/2 + time.Duration(s.cfg.Random()%uint64(d))
	if err := s.cfg.Time.Sleep(ctx, d); err != nil {
		return fmt.Errorf("lease: join pool %q: %w", s.cfg.Pool, err)
	}
	return nil
}

// join reads the pool, makes it if there is none, waits out its grace and
// checks its layout.
func (s *Slots) join(ctx context.Context) (Pool, error) {
	entries, err := s.cfg.Store.List(ctx, poolPrefix(s.cfg.Pool))
	if err != nil {
		return Pool{}, fmt.Errorf("lease: join pool %q: %w", s.cfg.Pool, err)
	}
	pool, found, err := readPool(s.cfg.Pool, entries)
	if err != nil {
		return Pool{}, err
	}
	if !found {
		if pool, err = s.makePool(ctx, pool); err != nil {
			return Pool{}, err
		}
	}
	if pool.Layout != s.cfg.Layout {
		return Pool{}, &PoolError{Pool: s.cfg.Pool, Have: "layout " + pool.Layout.String(), Want: s.cfg.Layout.String()}
	}
	if pool.Strict != s.cfg.Strict && (pool.Strict != 0 || !pool.Open) {
		return Pool{}, &PoolError{Pool: s.cfg.Pool, Have: "the strict wait " + pool.Strict.String(), Want: s.cfg.Strict.String()}
	}
	if pool.Strict != s.cfg.Strict {
		// Strictness is turned on by the first who has it, for all who join later. Those
		// who hold workers by now know nothing of it: their windows may be longer.
		if n, last := s.live(pool); n > 0 {
			return Pool{}, &PoolError{Pool: s.cfg.Pool, Want: "the strict wait " + s.cfg.Strict.String(),
				Have: fmt.Sprintf("%d holders without a strict wait, until %s at the latest", n, last.Format(time.RFC3339))}
		}
		return Pool{}, s.rewrite(ctx, pool)
	}
	if pool.Open {
		return pool, nil
	}
	if s.cfg.Grace > 0 {
		s.cfg.Log.Info("the pool is new: waiting for holders of an earlier life", "pool", s.cfg.Pool, "for", s.cfg.Grace)
	}
	// Whoever finds the pool not open waits the whole grace by its own
	// monotonic clock: no two clocks are compared.
	if err := s.cfg.Time.Sleep(ctx, s.cfg.Grace); err != nil {
		return Pool{}, fmt.Errorf("lease: wait %v for earlier holders of new pool %q: %w", s.cfg.Grace, s.cfg.Pool, err)
	}
	return Pool{}, s.rewrite(ctx, pool)
}

// live counts the slots whose fence has not passed, and says when the last one will.
func (s *Slots) live(pool Pool) (n int, last time.Time) {
	now, err := s.cfg.Layout.Tick(s.cfg.Time.Wall())
	if err != nil {
		return 0, last // not reached: the clock was read when this was asked
	}
	for _, slot := range pool.Slots {
		if slot.Fence >= now {
			n++
			if end := s.cfg.Layout.Time(slot.Fence + 1); end.After(last) {
				last = end
			}
		}
	}
	return n, last
}

// rewrite writes the record of a pool anew, open and as strict as this process
// is. It returns errMade where it succeeds: who came back meanwhile is to be read.
func (s *Slots) rewrite(ctx context.Context, pool Pool) error {
	if err := s.writePool(ctx, pool.revision, s.record(pool.Made, true)); err != nil {
		return err
	}
	return errMade
}

func (s *Slots) record(made time.Time, open bool) poolRecord {
	r := poolRecord{Layout: s.cfg.Layout.String(), Made: made, Open: open}
	if s.cfg.Strict > 0 {
		r.Strict = s.cfg.Strict.String()
	}
	return r
}

// makePool writes the record of a pool that has none. Slots may be there all
// the same, where a store lost one key and not the others.
func (s *Slots) makePool(ctx context.Context, pool Pool) (Pool, error) {
	if err := s.writePool(ctx, 0, s.record(s.cfg.Time.Wall().UTC(), s.cfg.Grace <= 0)); err != nil {
		return pool, err
	}
	return pool, errMade
}

// writePool writes the pool's record, or says errAgain when another did or it
// is not known: reading it anew tells.
func (s *Slots) writePool(ctx context.Context, old store.Revision, record poolRecord) error {
	value, err := encode(record)
	if err != nil {
		return err
	}
	_, err = s.cfg.Store.CompareAndSwap(ctx, poolKey(s.cfg.Pool), old, value)
	switch {
	case err == nil || errors.Is(err, store.ErrConflict):
		return nil
	case mayRetry(ctx, err):
		return fmt.Errorf("lease: write pool %q: %w: %w", s.cfg.Pool, errAgain, err)
	default:
		return fmt.Errorf("lease: write pool %q: %w", s.cfg.Pool, err)
	}
}

// mayRetry reports whether joining goes on after a write that was not applied
// as far as is known: not when the store refused it, or has already waited as
// long as it does and is not to be had.
func mayRetry(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrUnavailable)
}

// A reading is what both clocks showed at one moment.
type reading struct {
	wall time.Time
	mono time.Duration
}

func (s *Slots) read() reading { return reading{s.cfg.Time.Wall(), s.cfg.Time.Monotonic()} }

// checkClock compares the wall clock with the store's, if it has one, and returns
// what was compared.
func (s *Slots) checkClock(ctx context.Context) (reading, error) {
	clock, ok := s.cfg.Store.(store.Clock)
	if !ok {
		return s.read(), nil
	}
	before := s.cfg.Time.Monotonic()
	there, err := clock.Now(ctx)
	if err != nil {
		return reading{}, fmt.Errorf("lease: read the store's clock: %w", err)
	}
	here := s.read()
	took := here.mono - before
	if offset := here.wall.Add(-took / 2).Sub(there); offset.Abs() > s.cfg.Tolerance+took/2 { // the answer is about half a round trip old
		return here, &ClockError{Here: here.wall, There: there, Whose: "the store's", Tolerance: s.cfg.Tolerance}
	}
	return here, nil
}

// checkOthers compares the wall clock with what the holders wrote down.
func (s *Slots) checkOthers(pool Pool, here reading) error {
	if there, ok := clockOfOthers(pool); ok && there.Sub(here.wall) > s.cfg.Tolerance {
		return &ClockError{Here: here.wall, There: there, Whose: "that of most holders in pool " + s.cfg.Pool, Tolerance: s.cfg.Tolerance}
	}
	return nil
}

// pick returns the slot to claim, waiting for a pinned one if it must.
func (s *Slots) pick(ctx context.Context, pool Pool, ask Ask) (Slot, error) {
	if s.cfg.Pinned == nil {
		slot, ok := choose(pool, s.cfg.Datacenter, ask.Now, s.cfg.Random)
		if !ok {
			return slot, &FullError{Pool: s.cfg.Pool, Workers: pool.Layout.MaxWorker() + 1, Next: nextFree(pool, s.cfg.Datacenter)}
		}
		return slot, nil
	}
	slot := Slot{Datacenter: s.cfg.Datacenter, Worker: *s.cfg.Pinned, Fence: -1}
	for _, known := range pool.Slots {
		if known.Datacenter == slot.Datacenter && known.Worker == slot.Worker {
			slot = known
		}
	}
	if slot.revision == 0 || slot.Fence < ask.Now || s.cfg.PinnedAhead {
		return slot, nil
	}
	return slot, s.waitFor(ctx, slot)
}

// waitFor waits until the fence of a pinned slot has passed. It returns errHeld, since the holder may renew meanwhile.
func (s *Slots) waitFor(ctx context.Context, slot Slot) error {
	passed := s.cfg.Layout.Time(slot.Fence + 1)
	if d := passed.Sub(s.cfg.Time.Wall()); d > 0 {
		s.cfg.Log.Info("waiting for the fence of a pinned worker", "worker", slot.Worker, "pool", s.cfg.Pool, "holder", slot.holder(), "for", d)
		if err := s.cfg.Time.Sleep(ctx, d); err != nil {
			return fmt.Errorf("lease: worker %d of pool %q is held by %s until %s, if not renewed; waited for it: %w",
				slot.Worker, s.cfg.Pool, slot.holder(), slot.Until.UTC().Format(time.RFC3339Nano), err)
		}
	}
	return errHeld
}

// present returns what was asked some time ago as it would be asked now: a pool's
// grace, a queue of writers and a fence may have been waited for since. What the
// present is follows from a reading that was found right, however the wall clock
// steps: if it was far ahead when this was asked, the fence must not follow it.
func (s *Slots) present(ask Ask, checked reading) (Ask, error) {
	wall := checked.wall.Add(s.cfg.Time.Monotonic() - checked.mono)
	if then := s.cfg.Layout.Time(ask.Now); then.Sub(wall) > s.cfg.Tolerance {
		return ask, &ClockError{Here: then, There: wall, Whose: "itself a moment later", Tolerance: s.cfg.Tolerance}
	}
	if tick, err := s.cfg.Layout.Tick(wall); err == nil && tick > ask.Now {
		ask.Now, ask.From = tick, ask.From+(tick-ask.Now)
	}
	ask.From = min(ask.From, s.cfg.Layout.MaxTick())
	return ask, nil
}

// holder names who holds a slot, for people.
func (s Slot) holder() string {
	if s.Host == "" {
		return "process " + s.Owner
	}
	return fmt.Sprintf("process %d on %s", s.PID, s.Host)
}

// claim moves the slot's fence forward and so takes it.
func (s *Slots) claim(ctx context.Context, pool Pool, slot Slot, ask Ask) (firn.Grant, error) {
	after, err := s.start(slot, ask)
	if err != nil {
		return firn.Grant{}, err
	}
	fence := ask.fence(after, s.cfg.Layout)
	if fence <= after {
		return firn.Grant{}, &firn.TimeExhaustedError{Layout: s.cfg.Layout, End: s.cfg.Layout.End()}
	}
	if s.cfg.Strict > 0 { // see bounded: what is claimed begins after the wait
		fence = min(fence, after+firn.Tick((s.cfg.Strict-s.cfg.Tolerance)/s.cfg.Layout.Unit()))
	}
	h := holding{after: after, fence: fence, since: s.cfg.Time.Wall().UTC()}
	h.revision, err = s.write(ctx, slot.Worker, slot.revision, h, false)
	switch {
	case err == nil:
	case mayRetry(ctx, err):
		// Another was quicker, or it is not known whether the claim was applied,
		// or will be. Nothing has been issued under it, so another slot is as
		// good; at worst this one stays unused until its fence.
		return firn.Grant{}, fmt.Errorf("%w: %w", errAgain, err)
	default:
		return firn.Grant{}, fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err)
	}
	grant := firn.Grant{Worker: slot.Worker, After: after, Through: fence}
	s.keep(slot.Worker, h)
	if err = s.confirm(ctx, pool, slot, &grant); err == nil {
		return grant, nil
	}
	if errors.Is(err, ErrLost) {
		return firn.Grant{}, fmt.Errorf("%w: %w", errAgain, err)
	}
	if !errors.Is(err, errAgain) {
		err = fmt.Errorf("lease: claim worker %d of pool %q: %w", slot.Worker, s.cfg.Pool, err)
	}
	if slot.revision == 0 {
		// Giving it back would say that nobody has used it, which is not known of
		// a store that may have been wiped. It stays unused until the fence.
		s.forget(slot.Worker)
		return firn.Grant{}, err
	}
	return firn.Grant{}, errors.Join(err, s.unclaim(ctx, grant, slot.Fence))
}

// start returns the tick after which a claim of a slot begins: its fence, or later.
func (s *Slots) start(slot Slot, ask Ask) (firn.Tick, error) {
	after := slot.Fence
	if slot.revision == 0 && s.cfg.Grace > 0 {
		// The store may have been wiped, and the worker have had a holder who is gone.
		// Ids that run further ahead of the clock than this have run there elsewhere.
		after = max(after, min(ask.From-1, ask.Now+firn.Tick(s.cfg.Tolerance/s.cfg.Layout.Unit())))
	}
	if s.cfg.Strict > 0 {
		outwaited, err := s.cfg.Layout.Tick(s.cfg.Time.Wall().Add(s.cfg.Strict))
		if err != nil {
			return 0, err
		}
		after = max(after, outwaited)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.starts[slot.Worker]; ok {
		after = max(after, before+1) // see holding
	}
	s.starts[slot.Worker] = after
	return after, nil
}

// confirm makes sure, after a claim was written, that what it rests on holds.
func (s *Slots) confirm(ctx context.Context, pool Pool, slot Slot, grant *firn.Grant) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	if s.cfg.Strict > 0 {
		if err := s.outwait(ctx, *grant); err != nil {
			return err
		}
		// The write may have taken long: the wait counts from its end.
		waited, err := s.cfg.Layout.Tick(s.cfg.Time.Wall())
		if err != nil {
			return err
		}
		if grant.After < waited-1 {
			grant.After = waited - 1
			s.begins(grant.Worker, grant.After)
		}
	}
	if slot.revision == 0 && s.cfg.Grace > 0 {
		return s.samePool(ctx, pool)
	}
	return nil
}

// outwait waits until whoever may have held the worker by a claim that the store
// has lost has reached its fence, and then looks whether this one still stands as
// it was written. The look comes after the wait, so that a claim lost meanwhile is
// noticed — it is not written anew, since others may have claimed in between — and
// one that is lost later has begun its window at the look, not before.
func (s *Slots) outwait(ctx context.Context, held firn.Grant) error {
	s.cfg.Log.Info("a strict pool: waiting for holders that the store may have forgotten", "pool", s.cfg.Pool, "for", s.cfg.Strict)
	if err := s.cfg.Time.Sleep(ctx, s.cfg.Strict); err != nil {
		return fmt.Errorf("wait %v, as the pool is strict: %w", s.cfg.Strict, err)
	}
	h, err := s.holding(held)
	if err != nil {
		return err
	}
	entry, err := s.cfg.Store.Get(ctx, slotKey(s.cfg.Pool, s.cfg.Layout, s.cfg.Datacenter, held.Worker))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if entry.Revision != h.revision { // 0 if it is gone
		s.forget(held.Worker)
		return fmt.Errorf("%w: worker %d of pool %q: its slot changed while the claim waited", ErrLost, held.Worker, s.cfg.Pool)
	}
	return nil
}

// samePool makes sure that a slot which was not there was created in the pool
// that was read, and not in a store wiped since, where its grace is to be waited
// out first: another may have been granted the worker in between.
func (s *Slots) samePool(ctx context.Context, pool Pool) error {
	entry, err := s.cfg.Store.Get(ctx, poolKey(s.cfg.Pool))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if entry.Revision != pool.revision { // 0 if it is gone
		return fmt.Errorf("the record of pool %q changed meanwhile: %w", s.cfg.Pool, errAgain)
	}
	return nil
}

// settle waits until a claim is where a failover does not lose it, if the store
// is one that may. A renewal that is lost so is made good by the next: half a
// window is left.
func (s *Slots) settle(ctx context.Context) error {
	if settler, ok := s.cfg.Store.(store.Settler); ok {
		return settler.Settle(ctx)
	}
	return nil
}

// unclaim gives back a slot under which nothing was issued. It does so in a time
// of its own, as what is wrong may be that ctx has ended.
func (s *Slots) unclaim(ctx context.Context, g firn.Grant, fence firn.Tick) error {
	ctx, cancel := turns.WithTimeout(context.WithoutCancel(ctx), s.cfg.Time, callTimeout)
	defer cancel()
	return s.giveBack(ctx, g, fence)
}
