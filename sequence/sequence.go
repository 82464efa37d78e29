// Package sequence makes ids that increase strictly over all processes, in real time: if one
// caller has received an id, every id requested after that, by any process, is greater.
//
//	all, err := sequence.New(sequence.Config{Store: s})
//	...
//	defer all.Close(context.WithoutCancel(ctx))
//	txn, err := all.Namespace("txn")
//	id, err := txn.Next(ctx)
//
// Every id comes from an addition in the store that was made after the id was requested. Calls
// that come while an addition is in progress share the next one, so throughput grows with load
// while each call waits for one or two additions. While the store is away, calls fail, by
// design. A failure may leave gaps; it never repeats an id.
//
// Use it for versions of transactions and for messages in order. If ids need only be unique, or
// in order within one process, a generator over a lease makes them without the store.
//
// Not checked: that all processes use one store, and that the store keeps
// what it acknowledged. Config.MustExist is for stores that may forget.
package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// Config configures [New].
type Config struct {
	// Store is where the sequences are kept. Required; it is not closed.
	Store store.Store
	// Start is the least id: a sequence that is below it, or that the store does not know, goes on there. Default: 1.
	Start firn.ID
	// Max is the greatest id. Default: [firn.MaxID].
	Max firn.ID
	// MustExist refuses ids, with a *[store.SetBackError], when the store has no record of a sequence, or one that
	// lies below what this process has had of it: it was wiped or set back, or is another store. That ends once
	// [Namespace.Raise] has put the record right. Raise without MustExist makes a new sequence; a last of 0 lets it begin
	// at Start. Without MustExist a missing record begins at Start, and one that lies below is raised above what this
	// process has had, with a warning: it never makes an id twice or goes back, but ids that only other processes have had
	// may be made again.
	MustExist bool
	// Form says what the program makes of the ids before it shows them: veil.Cipher.Form returns that of a veil. The
	// store keeps it with each name, and a process with another gets a *[store.TakenError]. Default:
	// that of [Namespace.Declare], else [store.Plain].
	Form store.Form
	// Timeout bounds an attempt at an addition: if the store does not answer, calls fail
	// after at most twice that. It also bounds a row of attempts that fail although no other
	// process writes. 1ms to 24h. Default: 5s.
	Timeout time.Duration
	// Memory holds what this process knows of the counters of Store. Share one among everything in the process that uses the
	// same counters: then the process repeats no id if the store is set back, not even after another [New]. Default: a new one.
	Memory *register.Memory
	// Time is read and waited on. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random draws backoff. It is called concurrently. Default: math/rand/v2.
	Random func() uint64
	// Log receives what an operator should know. A record with the attribute "first" says that a name is new in the
	// store. Default: nothing.
	Log *slog.Logger
}

const (
	defaultTimeout = 5 * time.Second
	maxTimeout     = 24 * time.Hour
)

// Check returns an error that names every impossible setting but the store, which it does not use.
func (cfg Config) Check() error { return cfg.fill() }

// fill fills in the defaults and checks all but the store.
func (cfg *Config) fill() error {
	cfg.Start = cmp.Or(cfg.Start, 1)
	cfg.Max = cmp.Or(cfg.Max, firn.MaxID)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Form.Keys = maps.Clone(cfg.Form.Keys) // the caller may change its own
	config.Fill(&cfg.Time, &cfg.Random, &cfg.Log)
	if cfg.Memory == nil {
		cfg.Memory = &register.Memory{}
	}
	return errors.Join(
		config.In("Form", cfg.Form.Check()),
		cmp.Or(config.In("Max", config.Check("last id", cfg.Max, 1, firn.MaxID, "ids of a sequence")),
			config.In("Start", config.Check("first id", cfg.Start, 1, cfg.Max, "not above the last"))),
		config.In("Timeout", config.Check("timeout", cfg.Timeout, time.Millisecond, maxTimeout, "")))
}

// Sequences are the sequences of one store. Make them with [New]: the zero value is not usable. Do not copy it.
// Its methods may be called concurrently.
type Sequences struct {
	cfg   Config
	token string

	additions turns.Pool // one job per sequence with waiting requests

	mu    sync.Mutex // guards names; never held while waiting
	names map[string]*Namespace
}

// New checks cfg and returns the sequences of its store, which it does not touch yet.
func New(cfg Config) (*Sequences, error) {
	err := errors.Join(config.Required("sequence", "Store", cfg.Store), cfg.fill())
	if err != nil {
		return nil, config.Of[Config]("sequence", err)
	}
	return &Sequences{
		cfg: cfg, token: register.Token(), names: map[string]*Namespace{}, additions: turns.Pool{Time: cfg.Time},
	}, nil
}

// Namespace returns the namespace of a name, always the same one. The store is first used when an id
// is asked for. A name stays in memory, without a goroutine, until the program ends. The error
// is that of [store.CheckName], or [firn.ErrClosed].
func (a *Sequences) Namespace(name string) (*Namespace, error) {
	if err := store.CheckName("sequence", name); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.additions.Closed() {
		return nil, fmt.Errorf("sequence %q: %w", name, firn.ErrClosed)
	}
	s, ok := a.names[name]
	if !ok {
		s = &Namespace{all: a, name: name, form: a.cfg.Form}
		s.adder = adder{
			of: s, all: a, known: a.cfg.Memory.Of(name),
			record:  register.Register{Store: a.cfg.Store, Key: register.CounterKey(name)},
			counter: counter{start: int64(a.cfg.Start), max: int64(a.cfg.Max)},
		}
		a.names[name] = s
	}
	return s, nil
}

// Close makes later calls fail with [firn.ErrClosed], and waits until earlier ones are served or
// ctx ends; then it may be called again. Concurrent calls are safe. The store stays open.
func (a *Sequences) Close(ctx context.Context) error {
	a.additions.Close()
	if err := a.additions.Wait(ctx); err != nil {
		return turns.Ended(ctx, "sequence: close, with additions under way", err)
	}
	return nil
}
