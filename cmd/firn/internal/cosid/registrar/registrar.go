package registrar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// Forever is a safe-guard time that never ends, in milliseconds.
const Forever = math.MaxInt64

// MaxBits is the maximum of machine bits that a client may request.
const MaxBits = 31

// Config configures a [Registrar].
type Config struct {
	// Store keeps all state. Required. If it has a clock, its time is used too.
	Store store.Store
	// Time is the clock if the store has no clock, and times waits. Default: [firn.SystemTime].
	Time firn.TimeSource
	// MaxMachines limits the numbers in use in a namespace, whatever bits clients request:
	// a client that uses a new name each time would otherwise fill the store.
	// Default: 65,536.
	MaxMachines int
	// Random draws waits and choices. Several goroutines call it. Default: math/rand/v2.
	Random func() uint64
	// Log receives messages for operators. Default: they are discarded.
	Log *slog.Logger
}

const (
	// tolerance is how far the clocks of store and server may be apart.
	tolerance          = 10 * time.Second
	defaultMaxMachines = 1 << 16

	// maxTries bounds the tries of a call, and maxFaults those that end without an answer
	// of the store.
	maxTries  = 32
	maxFaults = 4
)

// A Registrar assigns machine numbers. Its methods may be called concurrently and
// return soon after their context ends. Make one with [New].
type Registrar struct {
	cfg Config

	mu    sync.Mutex // guards views; never held while waiting
	views map[string]*view

	warned *telemetry.Seldom
}

// New returns a registrar. It does not call the store yet.
func New(cfg Config) *Registrar {
	cfg.Time = cmp.Or(cfg.Time, firn.SystemTime())
	cfg.MaxMachines = cmp.Or(cfg.MaxMachines, defaultMaxMachines)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	return &Registrar{cfg: cfg, views: map[string]*view{}, warned: telemetry.NewSeldom(warnEvery)}
}

// An Instance identifies a client. Its name is unique in its namespace, and the namespace
// is valid by [store.CheckName].
type Instance struct {
	Namespace, Name string
	// Stable instances keep their number for ever, even while they are down.
	Stable bool
	// New, if not nil, is called by Distribute before it uses a number that was never used. Distribute returns its error,
	// or calls undo if the number was not assigned.
	New func() (undo func(), err error)
}

// A State is a machine number and when its holder last called.
type State struct {
	Machine int
	// Stamp is in Unix milliseconds by the registrar's clock. It is not below any earlier
	// stamp of this number. Ids with this number must have later times.
	Stamp int64
}

// now returns the time that decides about silent holders, in Unix milliseconds.
func (r *Registrar) now(ctx context.Context) (int64, error) {
	clock := r.cfg.Store.Traits().Clock
	if clock == nil {
		return r.cfg.Time.Wall().UnixMilli(), nil
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return 0, err
	}
	if wall := r.cfg.Time.Wall(); now.Sub(wall).Abs() > tolerance {
		return 0, refuse(ErrClock, "the store's clock reads %s and this server's %s, more than %v apart: synchronize them",
			now.UTC().Format(time.RFC3339Nano), wall.UTC().Format(time.RFC3339Nano), tolerance)
	}
	return now.UnixMilli(), nil
}

// try calls once until it succeeds or fails for good. Once must be idempotent: after a lost
// answer it reads again, and does not assume that its write was applied.
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
		case errors.Is(err, ErrOverflow), errors.Is(err, ErrNotFound), errors.Is(err, ErrLost), errors.As(err, new(*refusedError)):
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
	return fmt.Errorf("%s %q of %q: %w: each of %d tries conflicted with another write (%w)", what, of.Name, of.Namespace, store.ErrUnavailable, maxTries, last)
}

// Exists reports whether a namespace has machines, or had some.
func (r *Registrar) Exists(ctx context.Context, namespace string) (bool, error) {
	list, err := r.cfg.Store.List(ctx, keyPrefix+namespace+"/")
	return len(list) > 0, err
}

// warnEvery is how often warnings are logged. Clients cause them, as fast as they send requests.
const warnEvery = time.Second

// warn logs a warning, at most one in a second.
func (r *Registrar) warn(text string, fields ...any) {
	omitted, due := r.warned.Due(r.cfg.Time.Monotonic())
	if !due {
		r.cfg.Log.Debug(text, fields...)
		return
	}
	r.cfg.Log.Warn(text, append(fields, "omitted", omitted)...)
}
