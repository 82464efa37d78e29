package registrar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// Forever is a safe-guard time that never ends, in milliseconds.
const Forever = math.MaxInt64

// MaxBits is the most machine bits that can be asked for.
const MaxBits = 31

// Config is what [New] works with.
type Config struct {
	// Store keeps all state. Required. One that is a [store.Clock] gives the time too.
	Store store.Store
	// Time gives the time where the store does not, and is waited on. Default:
	// [firn.SystemTime].
	Time firn.TimeSource
	// Tolerance is how far the clocks of store and server may be apart. Default: 10s.
	Tolerance time.Duration
	// MaxMachines is how many numbers a namespace may have in use, whatever the bits
	// asked for, up to 1,048,576: a client with a new name each time would
	// otherwise fill the store. Default: 65,536.
	MaxMachines int
	// Random draws waits and choices; it is called by several goroutines. Default:
	// math/rand/v2.
	Random func() uint64
	// Log receives what an operator should know. Default: nothing.
	Log *slog.Logger
}

const (
	defaultTolerance   = 10 * time.Second
	defaultMaxMachines = 1 << 16
	mostMachines       = 1 << 20

	// maxTries bounds how often a call starts over after a conflict, and maxFaults
	// after the store failed to answer.
	maxTries  = 32
	maxFaults = 4
)

func (c *Config) check() error {
	var errs []error
	if c.Store == nil {
		errs = append(errs, &firn.SyntaxError{Field: "Store", Reason: "registrar: Config.Store is required"})
	}
	if c.Time == nil {
		c.Time = firn.SystemTime()
	}
	if c.Tolerance == 0 {
		c.Tolerance = defaultTolerance
	}
	if c.Tolerance < 0 {
		errs = append(errs, &firn.RangeError{What: "tolerance", Value: c.Tolerance.String(), Min: "0s", Max: "any"})
	}
	if c.MaxMachines == 0 {
		c.MaxMachines = defaultMaxMachines
	}
	if c.MaxMachines < 1 || c.MaxMachines > mostMachines {
		errs = append(errs, firn.NewRangeError("number of machines", int64(c.MaxMachines), 1, mostMachines, ""))
	}
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

// A Registrar hands out machine numbers. Its methods may be called concurrently and
// return soon after their context ends. Make one with [New].
type Registrar struct {
	cfg Config

	mu    sync.Mutex // guards views; never held while waiting
	views map[string]*view
}

// New returns a registrar. It asks nothing of the store yet.
func New(cfg Config) (*Registrar, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Registrar{cfg: cfg, views: map[string]*view{}}, nil
}

// An Instance is who asks. Its name is what tells it from others of its namespace,
// which is a name by [store.CheckName].
type Instance struct {
	Namespace, Name string
	// Stable instances keep their number for ever, also while they are away.
	Stable bool
}

// A State is a machine number and when its holder was last heard of.
type State struct {
	Machine int
	// Stamp is in Unix milliseconds by the registrar's clock, and not below any that
	// was given with this number before. Ids of this number may only be made with
	// later times.
	Stamp int64
}

// now returns the time by which all is decided, in Unix milliseconds.
func (r *Registrar) now(ctx context.Context) (int64, error) {
	clock, ok := r.cfg.Store.(store.Clock)
	if !ok {
		return r.cfg.Time.Wall().UnixMilli(), nil
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return 0, err
	}
	if wall := r.cfg.Time.Wall(); now.Sub(wall).Abs() > r.cfg.Tolerance {
		return 0, &ClockError{Store: now, Server: wall, Tolerance: r.cfg.Tolerance}
	}
	return now.UnixMilli(), nil
}

// try calls once until it succeeds or fails for good. All it does can be done again: a
// write whose answer was lost is made again over what is found, not assumed.
func (r *Registrar) try(ctx context.Context, what string, of Instance, once func() error) error {
	var last error
	faults := 0
	backoff := register.Backoff{Time: r.cfg.Time, Random: r.cfg.Random}
	for try := range maxTries {
		if try > 0 {
			if err := backoff.Wait(ctx); err != nil {
				return fmt.Errorf("%s %q of %q: %w (%w)", what, of.Name, of.Namespace, err, last)
			}
		}
		err := once()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrOverflow), errors.Is(err, ErrNotFound), errors.Is(err, ErrLost):
			return err
		case errors.Is(err, store.ErrConflict):
		case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrForeign), errors.Is(err, ErrClock), ctx.Err() != nil:
			return fmt.Errorf("%s %q of %q: %w", what, of.Name, of.Namespace, err)
		default:
			if faults++; faults > maxFaults {
				return fmt.Errorf("%s %q of %q: %w", what, of.Name, of.Namespace, err)
			}
		}
		last = err
	}
	return fmt.Errorf("%s %q of %q: %w: %d tries, others were quicker each time (%w)", what, of.Name, of.Namespace, store.ErrUnavailable, maxTries, last)
}
