// Package prefetch keeps a bounded buffer of ids in front of a slow source, and fills
// it in the background. Callers get an id from memory and rarely wait.
//
//	b, err := prefetch.New(prefetch.Config[firn.ID]{Source: source})
//	...
//	defer b.Close()
//	id, err := b.Next(ctx)
//
// A source is anything that fills a slice with ids: a client of a server of your own, a statement of a
// database. Ids leave the buffer in the order in which the source made them. Ids in the buffer at Close
// are never issued.
//
// # When not to use it
//
// A [firn.Generator], a lease and a segment make ids in this process: a buffer in front of them is no
// faster. Package client has a buffer of this kind inside.
//
// A buffered id was made some time before it is issued. Its time is that of its making (set Config.MaxAge
// where that matters), and another process may have received greater ids before. Do not buffer a source
// that promises each id to be greater than all before it.
package prefetch

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/demand"
	"github.com/firn-id/firn/internal/turns"
)

// A Source makes ids. Generators, leases, namespaces of segments and the client's are sources; one of a sequence would lose
// its order. Ids that it returns together with an error are used.
type Source[T any] interface {
	// Fill fills the front of dst and returns how many ids it wrote: at least one, or an error. It
	// returns soon after ctx ends. The buffer makes one call at a time.
	Fill(ctx context.Context, dst []T) (int, error)
}

// Config configures [New].
type Config[T any] struct {
	// Source makes the ids. Required.
	Source Source[T]
	// Size is the most ids that the buffer holds, 1 to 1,048,576. Default: 1,024.
	Size int
	// MinSize is the smallest size that the buffer shrinks to, 1 to Size. Below Size, the buffer follows
	// the demand. Default: Size.
	MinSize int
	// Target is how long a full buffer should last at the recent demand, within MinSize and Size, if
	// those differ. Default: one minute.
	Target time.Duration
	// Refill is the number of ids left at which the buffer is filled again, below Size. It shrinks in
	// proportion while the buffer is smaller. Default: half of Size.
	Refill int
	// MaxAge drops ids that are older, counted from when the source returned them; at least 1ms. A caller
	// that is already waiting gets one, whatever its age. Default: no limit.
	MaxAge time.Duration
	// Pause is for sources whose errors last because they retry by themselves. After an error the buffer
	// waits about that long (half more or less), at most 24h, and then asks the source again only when a
	// caller wants an id. Default: the buffer asks again by itself, after 1 to 250 ms.
	Pause time.Duration
	// Time is the clock for MaxAge, Target and the wait after a failure. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random draws the length of that wait. Default: math/rand/v2.
	Random func() uint64
}

const (
	defaultSize   = 1024
	maxSize       = 1 << 20
	defaultTarget = time.Minute
	// minBackoff is the mean wait after a first failure of the source; it doubles up to maxBackoff, which
	// bounds how long recovery goes unnoticed.
	minBackoff = time.Millisecond
	maxBackoff = 250 * time.Millisecond
	// minAge is more than a caller needs to come back for the rest of a batch.
	minAge   = time.Millisecond
	maxPause = 24 * time.Hour
	// endless is the longest duration, in whole hours.
	endless = math.MaxInt64 / time.Hour * time.Hour
)

// A Buffer is a bounded buffer in front of a source. Make one with [New]: the zero value is not usable. Do not copy it. Its methods
// may be called concurrently.
type Buffer[T any] struct {
	cfg    Config[T]
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex    // guards all below; never held while waiting
	head    []T           // the rest of the oldest batch
	made    time.Duration // when that batch was made, if MaxAge is set
	queue   []batch[T]    // the later batches
	count   int           // ids in head and queue
	partly  bool          // the source made fewer than requested: ask for the rest at once
	supply  demand.Supply
	waiters list.List     // of *waiter[T], in order of arrival; the buffer is empty while it has any
	changed chan struct{} // closed when waiters should check again; nil without waiters
	idle    chan struct{} // closed when the buffer wants filling; nil while it is being filled
	err     error         // of the latest attempt to fill, nil if it filled
	paused  bool          // that attempt failed, and Config.Pause has not passed yet
	state   State
	closed  bool
}

// A State is a snapshot of a buffer.
type State struct {
	Buffered int           // ids in the buffer
	Size     int           // ids that it should hold at the present demand
	Lasts    time.Duration // how long the buffered ids last at the recent demand, at most some 292 years
	Issued   int64         // ids taken out
	Fills    int64         // calls of the source
	Failures int64         // calls that made nothing
	Waits    int64         // calls of Next and Fill that found the buffer empty
	Expired  int64         // ids dropped because of MaxAge
	Err      error         // of the latest attempt to fill, nil if it filled
}

// New returns a buffer that fills at once, until Close. The error names every invalid setting.
func New[T any](cfg Config[T]) (*Buffer[T], error) {
	if err := cfg.complete(); err != nil {
		return nil, config.Of[Config[T]]("prefetch", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Buffer[T]{cfg: cfg, cancel: cancel, done: make(chan struct{})}
	b.supply.Start(cfg.Time.Monotonic(), cfg.limits())
	turns.Go(cfg.Time, func() { b.run(ctx) })
	return b, nil
}

// complete fills in the defaults and returns an error for every invalid setting.
func (cfg *Config[T]) complete() error {
	var noLog *slog.Logger
	config.Fill(&cfg.Time, &cfg.Random, &noLog)
	cfg.Size = cmp.Or(cfg.Size, defaultSize)
	cfg.MinSize = cmp.Or(cfg.MinSize, cfg.Size)
	cfg.Target = cmp.Or(cfg.Target, defaultTarget)
	cfg.Refill = cmp.Or(cfg.Refill, cfg.Size/2)
	err := errors.Join(
		cmp.Or(config.In("Size", config.Check("size", cfg.Size, 1, maxSize, "ids in a buffer")), errors.Join(
			config.In("MinSize", config.Check("least size", cfg.MinSize, 1, cfg.Size, "the size")),
			config.In("Refill", config.Check("refill", cfg.Refill, 0, cfg.Size-1, "below the size")))),
		config.In("Target", config.Check("target", cfg.Target, 0, endless, "")),
		config.In("Pause", config.Check("pause", cfg.Pause, 0, maxPause, "")))
	if cfg.MaxAge != 0 {
		err = errors.Join(err, config.In("MaxAge", config.Check("max age", cfg.MaxAge, minAge, endless, "")))
	}
	return errors.Join(config.Required("prefetch", "Source", cfg.Source), err)
}

// Next returns the next id. If the buffer is empty, it waits until there is an id, ctx ends (the error matches
// ctx.Err() and its cause), the source fails (the error is the source's; the buffer keeps trying) or the buffer is closed
// ([firn.ErrClosed]). Between two tries, Config.Pause apart, it returns the latest error without asking the source.
func (b *Buffer[T]) Next(ctx context.Context) (T, error) {
	if id, ok := b.TryNext(); ok {
		return id, nil
	}
	return b.wait(ctx)
}

// TryNext returns the next id, and false if the buffer is empty; it never waits.
func (b *Buffer[T]) TryNext() (T, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pop()
}

// TryFill moves buffered ids into dst, as many as fit, and returns how many; it never waits.
func (b *Buffer[T]) TryFill(dst []T) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range dst {
		id, ok := b.pop()
		if !ok {
			return n
		}
		dst[n] = id
	}
	return len(dst)
}

// Fill fills dst, and waits as Next does when the buffer runs empty. It returns how many ids it wrote,
// with an error if not all.
func (b *Buffer[T]) Fill(ctx context.Context, dst []T) (int, error) {
	filled := b.TryFill(dst)
	for filled < len(dst) {
		id, err := b.wait(ctx)
		if err != nil {
			return filled, err
		}
		dst[filled] = id
		filled++
		filled += b.TryFill(dst[filled:])
	}
	return filled, nil
}

// wait returns the next id once there is one.
func (b *Buffer[T]) wait(ctx context.Context) (T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, ok := b.pop(); ok {
		return id, nil
	}
	b.state.Waits++
	failures := b.state.Failures
	w := new(waiter[T])
	place := b.waiters.PushBack(w)
	for {
		err := b.failure(failures)
		if err != nil {
			err = fmt.Errorf("prefetch: the buffer is empty: %w", err)
		} else {
			err = b.sleep(ctx)
		}
		if w.served {
			return w.id, nil // the id is this caller's, whatever happened since
		}
		if err != nil {
			b.waiters.Remove(place)
			return w.id, err
		}
	}
}

// sleep waits for a change, or until ctx ends. The caller holds mu; sleep unlocks it meanwhile.
func (b *Buffer[T]) sleep(ctx context.Context) error {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	changed := b.changed
	b.mu.Unlock()
	defer b.mu.Lock()
	if err := turns.Wait(ctx, b.cfg.Time, changed); err != nil {
		return turns.Ended(ctx, "prefetch: wait for an id", err)
	}
	return nil
}

// failure returns why waiting is of no use, or nil. Failures is State.Failures when the caller arrived.
// The caller holds mu.
func (b *Buffer[T]) failure(failures int64) error {
	switch {
	case b.closed:
		return firn.ErrClosed
	case b.cfg.Pause > 0 && !b.paused && b.state.Failures == failures:
		return nil // the source is being called again after its pause
	default:
		return b.err
	}
}

// State returns a snapshot, for metrics.
func (b *Buffer[T]) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	s.Buffered, s.Size, s.Err = b.count, b.size(), b.err
	s.Lasts = b.supply.Lasts(b.cfg.Time.Monotonic(), s.Issued, int64(b.count))
	return s
}

// Close stops filling, fails waiting callers with [firn.ErrClosed] and drops the buffered ids. It returns
// once no call of the source is running. Its error is always nil. It may be called twice, and
// concurrently.
func (b *Buffer[T]) Close() error {
	b.mu.Lock()
	b.closed = true
	b.head, b.queue, b.count = nil, nil, 0
	b.notify()
	b.mu.Unlock()
	b.cancel()
	return turns.Wait(context.Background(), b.cfg.Time, b.done) // nil: this context does not end
}
