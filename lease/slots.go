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
	"github.com/firn-id/firn/internal/register"
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
	// the fence, which lie ahead of the clock. Otherwise Acquire waits until the fence
	// has passed or the worker was given back, as long as its context lasts; it reads
	// the slot every 1 to 2 seconds. Not in a strict pool.
	PinnedAhead bool

	// Tolerance is how far the clock here may differ from the store's, or lie
	// behind that of the other holders. Default: 10s.
	Tolerance time.Duration
	// Look is how often its holders read their slots, at most. The pool derives from the
	// greatest of all members how long newcomers wait where the store may have forgotten
	// holders: a look and the calls it makes, 12s by default. Default: 3s.
	Look time.Duration
	// Patience bounds each call that a look makes. Default: 2s.
	Patience time.Duration
	// Strict has a claim wait that long before anything is issued under it, and then
	// write it again over exactly what it was: safe even where the store has lost a claim
	// (wiped, set back to an older copy, failed over) whose holder was paused or cut
	// off and so does not know. It must be no less than the longest window of the
	// pool, its generators' lead, four times Tolerance and two units together, and all who
	// join must have the same; the pool remembers it. Windows are then sixteen times
	// Tolerance and four units at least. It needs a store with a clock. Zero: no such wait.
	Strict time.Duration

	// Time is read for the wall clock and waited on. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random draws tokens, slots and backoff. Default: math/rand/v2.
	Random func() uint64
	// Log receives what keeps a newcomer waiting, and losses of the store. Default: nothing.
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
	rules rules

	mu      sync.Mutex // guards all below; never held while waiting
	writes  uint64
	held    map[int64]holding
	starts  map[int64]firn.Tick // where the latest claim of a worker here began
	checked reading             // the latest that was found right
	grace   time.Duration       // the longest that the pool was seen to have
}

const (
	defaultTolerance = 10 * time.Second
	defaultWindow    = 5 * time.Minute
	defaultPatience  = 2 * time.Second

	// maxTries bounds how often Acquire reads the pool anew after a conflict or
	// a lost answer.
	maxTries = 64
	// graceCalls is how many calls may stand between the store's forgetting of a slot and
	// the pool's being closed, beside a look: one that hangs, a read, and the two that close
	// it; and half of one for waits between them.
	graceCalls = 4.5

	timeFormat = time.RFC3339Nano
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
	if cfg.Look == 0 {
		cfg.Look = defaultLook
	}
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
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
	for _, d := range []struct {
		what  string
		value time.Duration
	}{{"look", cfg.Look}, {"patience", cfg.Patience}, {"tolerance", cfg.Tolerance}} {
		if d.value < 0 || d.value > maxWindow {
			errs = append(errs, &firn.RangeError{What: d.what, Value: d.value.String(), Min: "1ns", Max: maxWindow.String()})
		}
	}
	if _, ok := cfg.Store.(store.Clock); cfg.Strict > 0 && cfg.Store != nil && !ok {
		errs = append(errs, firn.NewSyntaxError("strict wait", cfg.Strict.String(),
			"a strict pool needs a store with a clock to compare with: Redis, MySQL or PostgreSQL"))
	}
	if cfg.Strict > 0 && cfg.PinnedAhead {
		errs = append(errs, firn.NewSyntaxError("worker", "taken ahead of its fence", "in a strict pool no id may carry a time ahead: wait for the fence"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	embedded, ok := cfg.Store.(store.Embedded)
	return &Slots{
		cfg: cfg,
		rules: rules{
			layout: cfg.Layout, token: newToken(cfg.Random), tolerance: cfg.Tolerance, strict: cfg.Strict,
			trusting: ok && embedded.Embedded(),
		},
		held: map[int64]holding{}, starts: map[int64]firn.Tick{},
		checked: reading{wall: cfg.Time.Wall(), mono: cfg.Time.Monotonic()},
	}, nil
}

// notices is how long a holder of this process may take to notice that the store has
// forgotten it, and to write its slot again.
func (s *Slots) notices() time.Duration {
	return s.cfg.Look + time.Duration(graceCalls*float64(s.cfg.Patience))
}

// waits implements [fitting].
func (s *Slots) waits() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Strict + 2*max(s.grace, s.notices()) // twice, should the store change its life in between
}

// fit implements [fitting].
func (s *Slots) fit(cfg Config) error {
	switch {
	case s.cfg.Pinned != nil && switches(cfg.Generator.Rollback):
		return errNoOther
	case s.rules.strict > 0 && switches(cfg.Generator.Rollback):
		return firn.NewSyntaxError("rollback", "switch", fmt.Sprintf("in a strict pool another worker can be used after %v only: use wait, history or ahead", s.rules.strict))
	case s.rules.strict > 0 && cfg.Generator.Clock == firn.Virtual:
		return firn.NewSyntaxError("clock", "virtual", "in a strict pool ids follow a clock: steady and wall are allowed")
	case cfg.Look > s.cfg.Look:
		return &firn.RangeError{What: "look", Value: cfg.Look.String(), Min: "1ns", Max: s.cfg.Look.String(),
			Where: "SlotsConfig.Look, by which newcomers wait"}
	}
	return s.rules.covers(cfg.Window, cfg.Generator.Lead())
}

// newToken draws what tells a process from all others. Its host name and process
// id do not: containers have the same ones.
func newToken(random func() uint64) string { return fmt.Sprintf("%016x%016x", random(), random()) }

// Acquire implements [Source]: it joins the pool, making it if it is new, and
// claims the slot idle longest. Errors: *[PoolError], *[FullError],
// *[ClockError], [ErrForeign], *[firn.TimeExhaustedError], and the store's.
func (s *Slots) Acquire(ctx context.Context, ask Ask) (firn.Grant, error) {
	var (
		last   error
		opened store.Revision
	)
	backoff := register.Backoff{Time: s.cfg.Time, Random: s.cfg.Random}
	for try := 0; try < maxTries; try++ {
		if try > 0 && !errors.Is(last, errMade) && !errors.Is(last, errHeld) {
			if err := backoff.Wait(ctx); err != nil {
				return firn.Grant{}, fmt.Errorf("lease: join pool %q: %w", s.cfg.Pool, errors.Join(err, last))
			}
		}
		pool, checked, err := s.join(ctx, &opened)
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

// errAgain marks what reading the pool anew may mend. What does so at once is
// errMade: the pool's record was written; and errHeld: the fence of a pinned worker
// was waited for.
var (
	errAgain = fmt.Errorf("%w: others were quicker", store.ErrConflict)
	errHeld  = fmt.Errorf("its fence was waited for: %w", errAgain)
	errMade  = fmt.Errorf("the pool was made: %w", errAgain)
)

// mayRetry reports whether joining goes on after a write that was not applied
// as far as is known: not when the store refused it, or has already waited as
// long as it does and is not to be had.
func mayRetry(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrUnavailable)
}
