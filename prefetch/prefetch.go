// Package prefetch keeps a bounded buffer of ids filled in the background, for
// callers that want one without waiting: the producer and consumer of the
// snowflake literature, over any source.
//
//	b, err := prefetch.New(prefetch.Config[firn.ID]{Source: generator})
//	...
//	defer b.Close()
//	id, err := b.Next(ctx)
//
// A generator in the same process is as quick as a buffer; one pays where the
// source is slow or jumps, as a store or a server does. What lies in a buffer
// carries the time when it was made, not when it is taken: set MaxAge where
// that matters. Ids left in the buffer at Close are never issued.
package prefetch

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/demand"
	"github.com/firn-id/firn/internal/turns"
)

// A Source makes ids. [firn.Generator] and lease.Lease are sources.
type Source[T any] interface {
	// Fill fills the front of dst and returns how much of it, and why not all.
	// It returns soon after ctx ends. Only one call is made at a time.
	Fill(ctx context.Context, dst []T) (int, error)
}

// Config is what [New] makes a buffer of.
type Config[T any] struct {
	// Source is where ids come from. Required.
	Source Source[T]
	// Size is how many ids the buffer holds at most, 1 to 1,048,576. Default: 1,024.
	Size int
	// MinSize is how many it holds at least, 1 to Size. Where it is below Size,
	// the buffer follows the demand. Default: Size.
	MinSize int
	// Target is for how long a full buffer is to last at the demand of late, as
	// far as MinSize and Size allow; of no effect where those are equal.
	// Default: one minute.
	Target time.Duration
	// Refill is how many are left when the buffer is filled again, below Size;
	// while the buffer is smaller, as much of it in proportion. Default: half of Size.
	Refill int
	// MaxAge drops ids that have lain in the buffer for longer, counted from when the
	// source had made them; at least 1ms. Who waits in Next or Fill when they come has
	// one each, however late it wakes. Default: none.
	MaxAge time.Duration
	// Pause is for sources whose errors last, since they try again themselves what
	// is worth it. After an error the source is then left alone for about that
	// long (half more or less), at most 24h, and from then on until somebody asks for
	// an id. Default: it is asked again by itself, after 1 to 250 ms.
	Pause time.Duration
	// Time is read for MaxAge and Target, and waited on after a failure. Default:
	// [firn.SystemTime].
	Time firn.TimeSource
	// Random draws how long that wait is. Default: math/rand/v2.
	Random func() uint64
}

const (
	defaultSize   = 1024
	maxSize       = 1 << 20
	defaultTarget = time.Minute
	// minBackoff is the mean wait after a first failure of the source; it
	// doubles up to maxBackoff, which bounds how long recovery goes unnoticed.
	minBackoff = time.Millisecond
	maxBackoff = 250 * time.Millisecond
	// minAge is more than it takes to come back for the rest of what was made.
	minAge   = time.Millisecond
	maxPause = 24 * time.Hour
	// endless is what fits in a duration, in whole hours.
	endless = math.MaxInt64 / time.Hour * time.Hour
)

// ErrSource says that the source broke its contract, by filling nothing without an error
// or more than it was given.
var ErrSource = errors.New("prefetch: broken source")

// Buffer is a bounded buffer in front of a source. Its methods may be called
// concurrently; ids leave it in the order the source made them.
type Buffer[T any] struct {
	cfg    Config[T]
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex    // guards all below; never held while waiting
	head    []T           // the rest of the oldest batch
	made    time.Duration // when that was made, if MaxAge is set
	queue   []batch[T]    // the batches after it
	count   int           // ids in all of them
	partly  bool          // the source made fewer than was wanted: the rest is asked for at once
	supply  demand.Supply
	waiters waiter[T]     // a ring, in the order they came; the buffer is empty while there are any
	changed chan struct{} // closed when waiters should look again; nil without any
	idle    chan struct{} // closed when the buffer wants filling; nil while it is being filled
	err     error         // of the latest attempt to fill, nil if it filled
	paused  bool          // that was an error, and the source is left alone
	state   State
	closed  bool
}

// A batch is what the source made at once.
type batch[T any] struct {
	ids  []T
	made time.Duration
}

// A State is what a buffer shows of itself.
type State struct {
	Buffered int           // ids at hand
	Size     int           // ids it is to hold at the present demand
	Lasts    time.Duration // how long those at hand last at the demand of late, at most some 292 years
	Issued   int64         // ids taken out
	Fills    int64         // times the source was asked
	Failures int64         // times it made nothing
	Waits    int64         // calls of Next and Fill that found the buffer empty
	Expired  int64         // ids dropped for their age
	Err      error         // of the latest attempt to fill, nil if it filled
}

// New returns a buffer that starts filling at once. Close ends it. The error
// names every impossible setting.
func New[T any](cfg Config[T]) (*Buffer[T], error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Buffer[T]{cfg: cfg, cancel: cancel, done: make(chan struct{})}
	b.waiters.before, b.waiters.after = &b.waiters, &b.waiters
	b.supply.Start(cfg.Time.Monotonic(), cfg.limits())
	turns.Go(cfg.Time, func() { b.run(ctx) })
	return b, nil
}

// complete puts defaults in the place of what is not set, and refuses what is
// impossible.
func (cfg *Config[T]) complete() error {
	if cfg.Size == 0 {
		cfg.Size = defaultSize
	}
	if cfg.MinSize == 0 {
		cfg.MinSize = cfg.Size
	}
	if cfg.Target == 0 {
		cfg.Target = defaultTarget
	}
	if cfg.Refill == 0 {
		cfg.Refill = cfg.Size / 2
	}
	if cfg.Time == nil {
		cfg.Time = firn.SystemTime()
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	var errs []error
	if cfg.Source == nil {
		errs = append(errs, firn.NewSyntaxError("source", "", "Config.Source is required"))
	}
	if err := config.Check("size", cfg.Size, 1, maxSize, "ids in a buffer"); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, config.Check("least size", cfg.MinSize, 1, cfg.Size, "the size"), config.Check("refill", cfg.Refill, 0, cfg.Size-1, "below the size"))
	}
	if cfg.MaxAge != 0 {
		errs = append(errs, config.Check("max age", cfg.MaxAge, minAge, endless, ""))
	}
	return errors.Join(append(errs, config.Check("target", cfg.Target, 0, endless, ""), config.Check("pause", cfg.Pause, 0, maxPause, ""))...)
}

func (cfg *Config[T]) limits() demand.Limits {
	return demand.Limits{Least: int64(cfg.MinSize), Most: int64(cfg.Size), Target: cfg.Target}
}

// size is how many ids the buffer is to hold now; cfg.Size bounds it.
func (b *Buffer[T]) size() int { return int(b.supply.Size) }

// State returns a snapshot, for metrics.
func (b *Buffer[T]) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	s.Buffered, s.Size, s.Err = b.count, b.size(), b.err
	s.Lasts = b.supply.Lasts(b.cfg.Time.Monotonic(), s.Issued, int64(b.count))
	return s
}

// Close stops filling, wakes all who wait with [firn.ErrClosed] and drops what
// is left. It returns when the source is no longer called; it may be called
// twice, and concurrently.
func (b *Buffer[T]) Close() {
	b.mu.Lock()
	b.closed = true
	b.head, b.queue, b.count = nil, nil, 0
	b.notify()
	b.mu.Unlock()
	b.cancel()
	_ = turns.Wait(context.Background(), b.cfg.Time, b.done) // that context does not end
}
