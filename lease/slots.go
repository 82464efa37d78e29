package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A poolSource is Firn's lease protocol over a store: a [Source] that never grants a tick of a worker twice.
// To grant or renew it moves the fence of a slot from F to F' by compare-and-swap, and the grant is (F,
// F'].
type poolSource struct {
	cfg   Config
	rules rules

	checked  atomic.Pointer[reading] // the latest reading that passed the check
	setBacks atomic.Int64            // for State.SetBacks

	mu     sync.Mutex // guards all below; never held while waiting
	writes uint64
	held   map[int64]holding
	starts map[int64]firn.Tick // start of this process's latest claim of a worker
}

const (
	defaultTolerance = 10 * time.Second
	defaultWindow    = 5 * time.Minute
	maxPatience      = 2 * time.Second

	// maxTries bounds how often Acquire retries after a conflict or a lost answer.
	maxTries = 64
	// graceCalls is how many calls may lie between the look after the loss of a slot and the closing of the pool:
	// one that hangs, a read, two that close the pool, and half a call (50ms at least) for the waits
	// between them, which are a few milliseconds each. That look begins a look after the one before began, which
	// may just have missed the loss, or when that one is answered, if a call may take longer than a look.
	graceCalls = 4.5
)

// patience bounds each call of a look, and a release. It follows from the look, so that members with the
// same grace have the same patience: a newcomer with more would take a store for quick enough that answers
// a holder too late, and one with less would not wait for it.
func patience(look time.Duration) time.Duration { return min(4*look, maxPatience) }

// graceOf returns how long newcomers wait: for holders that look in time, and until the ids of stopped ones have ended,
// whose clocks may differ by a call and a half. These end with a tick.
func graceOf(look, unit time.Duration) time.Duration {
	call := patience(look)
	return max(max(look, call)+time.Duration(graceCalls*float64(call)), overdueAfter(look)+call+call/2+2*unit)
}

// NewSource returns the source that [Open] takes a worker from, to wrap it for [Keep]. It checks cfg, and makes no call of
// the store. The methods may be called concurrently. Errors of Acquire are those of Open, and of Renew and Look [ErrLost],
// *[ClockError] and the store's.
func NewSource(cfg Config) (Source, error) {
	s, err := newPoolSource(cfg)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newPoolSource(cfg Config) (*poolSource, error) {
	missing := config.Required("lease", "Store", cfg.Store)
	if missing != nil {
		cfg.Store = nil // and no nil pointer in it
	}
	s, err := configure(cfg)
	if err = errors.Join(err, missing); err != nil {
		return nil, config.Of[Config]("lease", err)
	}
	s.rules.trusting = cfg.Store.Traits().Embedded
	return s, nil
}

// configure returns a source with or without a store.
func configure(cfg Config) (*poolSource, error) {
	cfg.Pool = cmp.Or(cfg.Pool, "default")
	cfg.Generator.Layout = cmp.Or(cfg.Generator.Layout, firn.DefaultLayout())
	cfg.Tolerance = cmp.Or(cfg.Tolerance, defaultTolerance)
	cfg.Look = cmp.Or(cfg.Look, defaultLook)
	cfg.PID = cmp.Or(cfg.PID, os.Getpid())
	config.Fill(&cfg.Generator.Time, &cfg.Generator.Random, &cfg.Log)
	cfg.Generator.Rollback = slices.Clone(cfg.Generator.Rollback) // the caller may change its own
	if cfg.Pinned != nil {
		worker := *cfg.Pinned
		cfg.Pinned, cfg.Spares = &worker, slices.Clone(cfg.Spares)
	}
	if cfg.Host == "" {
		cfg.Host, _ = os.Hostname() // for people only
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &poolSource{
		cfg: cfg,
		rules: rules{
			layout: cfg.Generator.Layout, token: register.Token(), tolerance: cfg.Tolerance, strict: cfg.Strict,
			grace: graceOf(cfg.Look, cfg.Generator.Layout.Unit()),
		},
		held: map[int64]holding{}, starts: map[int64]firn.Tick{},
	}
	if cfg.Generator.Rollback != nil {
		s.rules.policyLead = s.rules.ticks(cfg.Generator.Lead())
	}
	s.check(s.read())
	return s, nil
}

// check returns every invalid setting. Defaults are already filled in.
func (cfg *Config) check() error {
	var numbers []int64
	if cfg.Pinned != nil {
		numbers = append([]int64{*cfg.Pinned}, cfg.Spares...)
	}
	errs := []error{
		config.In("Pool", store.CheckName("pool", cfg.Pool)),
		checkSlot(cfg.Generator.Layout, cfg.Generator.Datacenter, 0),
		checkNumbers(numbers, cfg.Generator.Layout),
		config.In("Look", config.Check("look", cfg.Look, minLook, maxWindow, "")),
		config.In("Tolerance", config.Check("tolerance", cfg.Tolerance, 1, maxWindow, "")),
		config.In("Strict", config.Check("strict wait", cfg.Strict, 0, maxStrict, "")),
	}
	if cfg.Pinned == nil && len(cfg.Spares) > 0 {
		errs = append(errs, config.In("Spares", firn.NewSyntaxError("list of spares", fmt.Sprint(cfg.Spares), "spares need a fixed worker, in Go Config.Pinned: name that too")))
	}
	if cfg.Pinned == nil && cfg.PinnedAhead {
		errs = append(errs, config.In("PinnedAhead", firn.NewSyntaxError("worker", "taken ahead of its fence", "only a fixed worker, in Go Config.Pinned, can be: name that too")))
	}
	if cfg.Strict > 0 && cfg.Store != nil && cfg.Store.Traits().Clock == nil {
		// Without a field: programs check their settings before they have a store, by names of their own.
		errs = append(errs, firn.NewSyntaxError("strict wait", cfg.Strict.String(),
			"a strict pool needs a store with a clock to compare with: Redis, MySQL or PostgreSQL"))
	}
	if cfg.Strict > 0 && cfg.PinnedAhead {
		errs = append(errs, config.In("PinnedAhead", firn.NewSyntaxError("worker", "taken ahead of its fence", "in a strict pool no id may carry a time ahead: wait for the fence")))
	}
	return errors.Join(errs...)
}

// Traits implements [Source].
func (s *poolSource) Traits() Traits {
	wait := s.rules.wait() + 2*s.rules.grace // twice, in case the store changes its life in between
	return Traits{Fit: s.fit, Fences: true, Wait: wait, Overdue: s.overdue(), SetBacks: s.setBacks.Load}
}

// fit returns an error if these slots cannot keep a lease.
func (s *poolSource) fit(cfg Config) error {
	g := &cfg.Generator
	switch {
	case g.Layout != s.cfg.Generator.Layout:
		return config.In("Layout", firn.NewSyntaxError("layout", g.Layout.String(), "the slots are of a pool with layout "+s.cfg.Generator.Layout.String()+": give both the same"))
	case fencedLead(*g) > fencedLead(s.cfg.Generator): // Acquire would not expect it
		return config.In("Ahead", firn.NewSyntaxError("lead", fencedLead(*g).String(), "the slots are for generators that run ahead of the clock by "+fencedLead(s.cfg.Generator).String()+" at most: give both the same Generator"))
	case s.rules.ticks(g.Lead()) > max(s.rules.ticks(fencedLead(*g)), s.rules.policyLead): // nor would newcomers
		return config.In("Rollback", firn.NewSyntaxError("rollback", g.Rollback.String(), "the slots are for generators that run ahead of the clock by "+max(fencedLead(*g), time.Duration(s.rules.policyLead)*g.Layout.Unit()).String()+" at most: give both the same Generator"))
	case s.cfg.Pinned != nil && len(s.cfg.Spares) == 0 && switches(cfg.Generator.Rollback):
		return errNoOther
	case s.rules.strict > 0 && switches(cfg.Generator.Rollback):
		return config.In("Rollback", firn.NewSyntaxError("rollback", "switch",
			fmt.Sprintf("in a strict pool another worker can be used after %v only: use wait, history or ahead", s.rules.wait())))
	case s.rules.strict > 0 && cfg.Generator.Clock == firn.ClockVirtual:
		return config.In("Clock", firn.NewSyntaxError("clock", "virtual", "in a strict pool ids follow a clock: steady and wall are allowed"))
	}
	leads := s.rules.counted(cfg.Generator)
	if s.rules.strict > 0 {
		leads = s.rules.covers(cfg.Window, fencedLead(cfg.Generator))
	}
	return errors.Join(
		config.In("Datacenter", config.Check("datacenter", g.Datacenter, s.cfg.Generator.Datacenter, s.cfg.Generator.Datacenter, "that of the slots")),
		config.In("Look", config.Check("look", cfg.Look, 1, s.cfg.Look, "the pool's, by which newcomers wait")),
		leads)
}

// Acquire implements [Source]: it joins the pool, creates it if needed, and claims a slot.
// Errors: *[PoolError], *[FullError], *[ClockError], [store.ErrForeign],
// *[firn.TimeExhaustedError], and the store's.
func (s *poolSource) Acquire(ctx context.Context, ask func() Ask) (grant firn.Grant, err error) {
	ctx = store.Urgent(ctx)
	var wrote store.Revision
	digits, suspect := partDigits, false
	backoff := register.Backoff{Time: s.cfg.Generator.Time, Random: s.cfg.Generator.Random}
	for try := 0; try < maxTries; try++ {
		grant, err = s.attempt(ctx, ask, s.anyPart(digits), &wrote)
		switch {
		case errors.Is(err, errFar) && !suspect: // this process may have been suspended since it read the clock
			suspect = true
		case !errors.Is(err, errAgain): // also err == nil
			return grant, err
		case errors.Is(err, errPart):
			digits++
		case errors.Is(err, errHeld):
			try = 0 // the holder may renew for ever; the wait ends with ctx
		case errors.Is(err, errMade):
		default:
			if waitErr := backoff.Wait(ctx); waitErr != nil {
				return firn.Grant{}, fmt.Errorf("lease: join pool %q: %w", s.cfg.Pool, errors.Join(waitErr, err))
			}
		}
	}
	return firn.Grant{}, fmt.Errorf("lease: no slot of pool %q after %d tries: %w", s.cfg.Pool, maxTries, err)
}

func (s *poolSource) attempt(ctx context.Context, asking func() Ask, of part, wrote *store.Revision) (firn.Grant, error) {
	pool, checked, err := s.join(ctx, of, wrote)
	if err != nil {
		return firn.Grant{}, err
	}
	ask := asking()
	now, err := s.present(ask, checked)
	if err != nil {
		return firn.Grant{}, err
	}
	ask = ask.at(now, s.rules.ticks(fencedLead(s.cfg.Generator))+2, s.cfg.Generator.Layout)
	if ask.Now >= s.cfg.Generator.Layout.MaxTick() {
		return firn.Grant{}, &firn.TimeExhaustedError{Layout: s.cfg.Generator.Layout, End: s.cfg.Generator.Layout.End()}
	}
	slot, err := s.pick(ctx, pool, ask)
	if err != nil {
		return firn.Grant{}, err
	}
	return s.claim(ctx, pool, slot, ask)
}

// errAgain: read the pool again and retry, at once after errMade, errHeld and errPart.
var (
	errAgain = fmt.Errorf("%w: others were quicker", store.ErrConflict)
	errHeld  = fmt.Errorf("its fence was waited for: %w", errAgain)
	errMade  = fmt.Errorf("the pool was made: %w", errAgain)
	errPart  = fmt.Errorf("no slot of the part that was read can be claimed: %w", errAgain)
	// errFar: a fence lies further ahead than a member of this strict pool may have moved it.
	errFar = fmt.Errorf("%w", ErrPool)
	// errSlow: the store answered, but later than holders wait.
	errSlow = fmt.Errorf("%w: it answers too slowly for holders to look", store.ErrUnavailable)
)

// again returns errAgain with the reason, unless that is the end of ctx: then no other was quicker.
func again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errAgain, err)
}
