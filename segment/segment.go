// Package segment makes ids from ranges of a counter in a store: small numbers
// that grow, one counter a name, issued from memory.
//
//	s, err := segment.New(segment.Config{Store: store})
//	...
//	defer s.Close(context.WithoutCancel(ctx))
//	orders, err := s.Namespace("orders")
//	id, err := orders.Next(ctx)
//
// Use it for primary keys and whatever else should be short. A process moves
// the counter of a name forward by a step, by compare-and-swap, and issues the ids between
// from memory. Before they are used up it fetches the next range in the background. The step
// follows the demand, so that a range lasts for about a quarter of an hour, and the store may
// be away that long. Ids of one process grow; those of several interleave by ranges. A process
// that ends without Close leaves a gap.
//
// It relies on the store not forgetting. If the store was wiped or set back to an older
// copy, ids that other processes issued since then may be issued again; see
// docs/segments.md, and Config.Start for the way out. Do not use it if the number of ids
// must stay secret (veil them), nor if ids of several processes must be in order.
package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/demand"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// Config configures [New]. It applies to all names.
type Config struct {
	// Store keeps the counters. Required, unless there is a Source.
	Store store.Store
	// Source hands out ranges instead of the Store; Start, MustExist, Offset, Stride and Form must be left out.
	Source Source

	// MinStep and MaxStep bound how many ids are fetched at once, and so how many ids of
	// each held range a crash loses. Defaults: 1,000 and 1,000,000.
	MinStep, MaxStep int64
	// Target is how long a range should last at the present demand. Default: 15m.
	Target time.Duration
	// Ahead is the fraction of a range that is left when the next is fetched,
	// 1e-9 to 1: with Target, how long the store may be away. Default: 0.8.
	Ahead float64
	// Chain is how many ranges a burst may have fetched ahead, 1 to 64. Default: 8.
	Chain int

	// Start is the least id: a name that is below it, or that the store does not know, goes on there.
	// A counter below it is raised. Default: 1.
	Start firn.ID
	// MustExist refuses ranges, with a *[store.SetBackError], when the store has no counter of a name, or one that lies below
	// what this process has had of it: it was wiped or set back, or is another store. Ids that are in memory are still
	// issued. That ends once [Namespace.Raise] or [RaiseCounter] has put the counter right; one of them also makes a new
	// counter. Without MustExist a missing counter begins at Start, and one that lies below is raised above what this
	// process has had, with a warning: ids that only other processes have had may be made again.
	MustExist bool
	// Max is the last id. All processes that use a name need the same Max. Default: [firn.MaxID].
	Max firn.ID
	// Offset and Stride restrict ids to those that leave the remainder Offset when divided by
	// Stride, up to 1,048,576. This lets independent stores serve one name. The store keeps
	// them with each name. Default: all ids.
	Offset, Stride int64

	// Form says what the program makes of the ids before it shows them: veil.Cipher.Form returns that of a veil. The
	// store keeps it with each name, and a process with another gets a *[store.TakenError]. Default:
	// [store.Plain].
	Form store.Form

	// Memory holds what this process knows of the counters of Store. Share one among everything in the process that uses the
	// same counters: then the process repeats no id if the store is set back, not even after another [New]. Not with a Source.
	// Default: a new one.
	Memory *register.Memory

	// Fetches is how many fetches may be in progress at once, 1 to 1,024. Default: 16.
	Fetches int
	// MaxNames is how many names there may be. Default: 1,048,576.
	MaxNames int

	// Time is read for the demand and waited on. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random draws backoff. It is called concurrently. Default: math/rand/v2.
	Random func() uint64
	// Log receives what an operator should know. A record with the attribute "first" says that a name is new in the
	// store. Default: nothing.
	Log *slog.Logger
}

const (
	defaultMinStep  = 1000
	defaultMaxStep  = 1_000_000
	defaultTarget   = 15 * time.Minute
	defaultAhead    = 0.8
	defaultChain    = 8
	defaultFetches  = 16
	defaultMaxNames = 1 << 20

	maxStep    = 1 << 40
	maxTarget  = 30 * 24 * time.Hour
	minAhead   = 1e-9
	maxChain   = 64
	maxFetches = 1024
	// callTimeout bounds one fetch.
	callTimeout = 10 * time.Second
)

// Check returns every mistake in the settings, whether or not there is a Store or Source yet.
func (c Config) Check() error { return c.fill() }

// check fills in the defaults and names every mistake.
func (c *Config) check() error {
	var err error
	if c.Source != nil && (c.Start != 0 || c.MustExist || c.Offset != 0 || c.Stride != 0 || c.Form.Name != "" || c.Form.Keys != nil) {
		err = config.Mistake("segment", "Source", "has its own ids: leave out Start, MustExist, Offset, Stride and Form")
	}
	if c.Source != nil && c.Memory != nil {
		err = errors.Join(err, config.Mistake("segment", "Memory", "is of the counters of a Store: give it to NewSource, if your Source wraps that, else leave it out"))
	}
	err = errors.Join(err, c.fill())
	if (c.Store == nil) == (c.Source == nil) {
		err = errors.Join(config.Mistake("segment", "Store", "or Config.Source is required, and not both"), err)
	} else if c.Store != nil {
		err = errors.Join(config.Required("segment", "Store", c.Store), err)
	} else {
		err = errors.Join(config.Required("segment", "Source", c.Source), err)
	}
	return err
}

// fill is check without the source.
func (c *Config) fill() error {
	standard := int64(defaultMinStep)
	if c.MaxStep > 0 {
		standard = min(standard, c.MaxStep)
	}
	c.MinStep = cmp.Or(c.MinStep, standard)
	c.MaxStep = cmp.Or(c.MaxStep, min(max(defaultMaxStep, c.MinStep), maxStep))
	c.Target = cmp.Or(c.Target, defaultTarget)
	c.Ahead = cmp.Or(c.Ahead, defaultAhead)
	c.Chain = cmp.Or(c.Chain, defaultChain)
	c.Fetches = cmp.Or(c.Fetches, defaultFetches)
	c.MaxNames = cmp.Or(c.MaxNames, defaultMaxNames)
	c.Start = cmp.Or(c.Start, 1)
	c.Max = cmp.Or(c.Max, firn.MaxID)
	c.Stride = cmp.Or(c.Stride, 1)
	c.Form.Name = cmp.Or(c.Form.Name, store.Plain)
	c.Form.Keys = maps.Clone(c.Form.Keys) // the caller may change its own
	config.Fill(&c.Time, &c.Random, &c.Log)
	if c.Memory == nil {
		c.Memory = &register.Memory{}
	}

	return errors.Join(
		config.In("Target", config.Check("target", c.Target, time.Millisecond, maxTarget, "")),
		config.In("Ahead", config.Check("ahead", c.Ahead, minAhead, 1, "a fraction of a range")),
		config.In("MinStep", config.Check("least step", c.MinStep, 1, maxStep, "")),
		config.In("MaxStep", config.Check("greatest step", c.MaxStep, min(c.MinStep, maxStep), maxStep, "not below the least step")),
		config.In("Chain", config.Check("chain", c.Chain, 1, maxChain, "")),
		config.In("Form", c.Form.Check()),
		config.In("Fetches", config.Check("fetches", c.Fetches, 1, maxFetches, "")),
		config.In("MaxNames", config.Check("number of names", c.MaxNames, 1, 1<<30, "")),
		cmp.Or(config.In("Max", config.Check("last id", c.Max, 1, firn.MaxID, "")), config.In("Start", config.Check("first id", c.Start, 1, c.Max, "not above the last"))),
		Stripe{Offset: c.Offset, Stride: c.Stride}.check())
}

// Segments is any number of names over one source of ranges. Make one with [New]: the zero value is not usable. Do not copy it. Its
// methods may be called concurrently. An idle name costs less than 1 KiB and no goroutine.
type Segments struct {
	cfg    Config
	source Source
	limits demand.Limits
	empty  *cell // a used-up cell

	enqueue func(n *Namespace) // queues a fetch for n
	fetches turns.Pool
	cancel  context.CancelFunc // ends the fetches in progress

	mu    sync.RWMutex // guards names; never held while waiting
	names map[string]*Namespace

	closing turns.Ending
}

// New checks cfg and returns segments without any name. It does not touch the store: a name
// is read when its first id is asked for. The error names every impossible setting.
func New(cfg Config) (*Segments, error) {
	if err := cfg.check(); err != nil {
		return nil, config.Of[Config]("segment", err)
	}
	s := &Segments{
		cfg: cfg, source: cfg.Source, empty: &cell{}, names: map[string]*Namespace{},
		limits:  demand.Limits{Least: cfg.MinStep, Most: cfg.MaxStep, Target: cfg.Target},
		fetches: turns.Pool{Time: cfg.Time, Most: cfg.Fetches},
	}
	s.empty.word.Store(sealed) // additions to it are of 0: its stride
	if s.source == nil {
		s.source = newCounters(&s.cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.enqueue = func(n *Namespace) {
		s.fetches.Go(func() {
			limited, cancel := turns.WithTimeout(ctx, s.cfg.Time, callTimeout)
			defer cancel()
			if again := n.fetch(limited); again {
				s.enqueue(n)
			}
		})
	}
	return s, nil
}

// Namespace returns the namespace of a name, the same one each time. It does not touch the store. Errors:
// that of [store.CheckName], and for a name that was not asked for before *[firn.RangeError], for one too many, and
// [firn.ErrClosed].
func (s *Segments) Namespace(name string) (*Namespace, error) {
	s.mu.RLock()
	n := s.names[name]
	s.mu.RUnlock()
	if n != nil {
		return n, nil
	}
	if err := store.CheckName("segment", name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.names[name]; {
	case n != nil:
		return n, nil
	case s.fetches.Closed():
		return nil, firn.ErrClosed
	case len(s.names) >= s.cfg.MaxNames:
		return nil, firn.NewRangeError("number of names", int64(len(s.names))+1, 1, int64(s.cfg.MaxNames), "Config.MaxNames")
	}
	n = &Namespace{all: s, name: name, ids: stock{all: s, name: name, floor: -1}, refill: refill{all: s, depth: 1, starved: true}}
	n.ids.cell.Store(s.empty)
	s.names[name] = n
	return n, nil
}

// Next is [Namespace.Next] of name, at the cost of one more map lookup. It also returns the
// errors of [Segments.Namespace].
func (s *Segments) Next(ctx context.Context, name string) (firn.ID, error) {
	n, err := s.Namespace(name)
	if err != nil {
		return 0, err
	}
	return n.Next(ctx)
}

// Close ends issuing, waits for fetches in progress, and gives unused ids back if they are
// still the newest of their name. Once it returns, no id is issued. The ctx bounds all of this. Ids
// that could not be given back are never issued by any process, also if Close is called again.
// Concurrent calls are safe, and wait for each other.
func (s *Segments) Close(ctx context.Context) error {
	s.fetches.Close()
	return s.closing.Do(ctx, s.cfg.Time, "segment: wait for another Close", func() error {
		late := s.fetches.Wait(ctx)
		s.cancel()
		if late != nil {
			late = turns.Ended(ctx, "segment: wait for fetches under way, whose ids stay unused", late)
		}
		return errors.Join(late, s.giveBack(ctx))
	})
}

// overdue is err, or if [callTimeout] ended the call, and not ctx of the caller, an error that does not say that the
// caller's deadline has passed.
func overdue(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("segment: no answer within %v: %w", callTimeout, &store.TextError{Kind: store.ErrUnavailable, Err: err})
}

// giveBack stops all names and gives back their unused ids, several names at a time. It ends
// with the first failure: the store is away, and there may be many names.
func (s *Segments) giveBack(ctx context.Context) error {
	to, ok := s.source.(Returner)
	calls := turns.Pool{Time: s.cfg.Time, Most: s.cfg.Fetches}
	var mu sync.Mutex // guards given and failed
	names, given := 0, 0
	var failed error // the first
	s.mu.RLock()
	all := slices.SortedFunc(maps.Values(s.names), func(a, b *Namespace) int { return strings.Compare(a.name, b.name) })
	s.mu.RUnlock()
	for _, n := range all {
		unused := n.stop()
		if unused.Count == 0 || !ok {
			continue
		}
		names++
		calls.Go(func() {
			limited, cancel := turns.WithTimeout(ctx, s.cfg.Time, callTimeout)
			defer cancel()
			back, err := to.Return(limited, n.name, unused)
			err = overdue(ctx, err)
			mu.Lock()
			defer mu.Unlock()
			if back {
				given++
			}
			if err != nil && failed == nil {
				failed = err
				calls.Close()
			}
		})
	}
	if names == 0 {
		return nil
	}
	// Each call ends with ctx, so this does too.
	if err := calls.Wait(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if failed == nil {
		s.cfg.Log.Info("segments closed", "with_unused_ids", names, "given_back", given)
	} else {
		s.cfg.Log.Warn("segments closed, and unused ids of some names could not be given back: they are never issued", "names", names-given, "error", failed)
		return fmt.Errorf("%w; unused ids of %d names stay unused", failed, names-given)
	}
	return nil
}
