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
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/firn-id/firn"
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
	// Size is how many ids the buffer holds, 1 to 1,048,576. Default: 1,024.
	Size int
	// Refill is how many are left when the buffer is filled again, below Size.
	// Default: half of Size.
	Refill int
	// MaxAge drops ids that have lain in the buffer for longer. Default: none.
	MaxAge time.Duration
	// Time is read for MaxAge and waited on after a failure. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random draws how long that wait is. Default: math/rand/v2.
	Random func() uint64
}

const (
	defaultSize = 1024
	maxSize     = 1 << 20
	// minBackoff is the mean wait after a first failure of the source; it
	// doubles up to maxBackoff, which bounds how long recovery goes unnoticed.
	minBackoff = time.Millisecond
	maxBackoff = 250 * time.Millisecond
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

	mu      sync.Mutex // guards all below; never held while waiting
	ring    []T
	made    []time.Duration // when each was, if MaxAge is set
	head    int
	count   int
	changed chan struct{} // closed when waiters should look again; nil without any
	idle    chan struct{} // closed when the buffer wants filling; nil while it is being filled
	err     error         // of the latest attempt to fill, nil if it filled
	state   State
	closed  bool
}

// A State is what a buffer shows of itself.
type State struct {
	Buffered int   // ids at hand
	Size     int   // ids it can hold
	Fills    int64 // times the source was asked
	Failures int64 // times it made nothing
	Waits    int64 // calls of Next that found the buffer empty
	Expired  int64 // ids dropped for their age
	Err      error // of the latest attempt to fill, nil if it filled
}

// New returns a buffer that starts filling at once. Close ends it. The error
// names every impossible setting.
func New[T any](cfg Config[T]) (*Buffer[T], error) {
	if cfg.Size == 0 {
		cfg.Size = defaultSize
	}
	if cfg.Refill == 0 {
		cfg.Refill = cfg.Size / 2
	}
	if cfg.Time == nil {
		cfg.Time = firn.SystemTime()
	}
	var errs []error
	if cfg.Source == nil {
		errs = append(errs, firn.NewSyntaxError("source", "", "Config.Source is required"))
	}
	if cfg.Size < 1 || cfg.Size > maxSize {
		errs = append(errs, firn.NewRangeError("size", int64(cfg.Size), 1, maxSize, "ids in a buffer"))
	} else if cfg.Refill < 0 || cfg.Refill >= cfg.Size {
		errs = append(errs, firn.NewRangeError("refill", int64(cfg.Refill), 0, int64(cfg.Size)-1, "below the size"))
	}
	if cfg.MaxAge < 0 {
		errs = append(errs, &firn.RangeError{What: "max age", Value: cfg.MaxAge.String(), Min: "0s", Max: "2562047h"})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Buffer[T]{cfg: cfg, cancel: cancel, done: make(chan struct{}), ring: make([]T, cfg.Size)}
	if cfg.MaxAge > 0 {
		b.made = make([]time.Duration, cfg.Size)
	}
	turns.Go(cfg.Time, func() { b.run(ctx) })
	return b, nil
}

// Next returns the next id. With one at hand it does not wait; else it waits
// until there is one, ctx ends (then the error is its cause), the source fails
// (then it is the source's, and the buffer keeps trying) or the buffer is
// closed ([firn.ErrClosed]).
func (b *Buffer[T]) Next(ctx context.Context) (T, error) {
	waited := false
	for {
		b.mu.Lock()
		if id, ok := b.pop(); ok {
			b.mu.Unlock()
			return id, nil
		}
		err := b.err
		if b.closed {
			err = firn.ErrClosed
		}
		if !waited {
			b.state.Waits++
			waited = true
		}
		if err != nil {
			b.mu.Unlock()
			var none T
			return none, fmt.Errorf("prefetch: the buffer is empty: %w", err)
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		if err := turns.Wait(ctx, b.cfg.Time, changed); err != nil {
			var none T
			return none, err
		}
	}
}

// TryNext returns the next id if one is at hand; it never waits.
func (b *Buffer[T]) TryNext() (T, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pop()
}

// Take moves what is at hand into dst, as much as fits, and returns how much;
// it never waits.
func (b *Buffer[T]) Take(dst []T) int {
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

// State returns a snapshot, for metrics.
func (b *Buffer[T]) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	s.Buffered, s.Size, s.Err = b.count, b.cfg.Size, b.err
	return s
}

// Close stops filling, wakes all who wait with [firn.ErrClosed] and drops what
// is left. It returns when the source is no longer called; it may be called
// twice, and concurrently.
func (b *Buffer[T]) Close() {
	b.mu.Lock()
	b.closed = true
	b.count = 0
	b.notify()
	b.mu.Unlock()
	b.cancel()
	_ = turns.Wait(context.Background(), b.cfg.Time, b.done) // that context does not end
}

// pop takes the oldest id that is not too old, and asks for more below the
// refill mark. The caller holds mu.
func (b *Buffer[T]) pop() (id T, ok bool) {
	if b.made != nil {
		b.expire()
	}
	if b.count > 0 {
		id, ok = b.ring[b.head], true
		b.drop()
	}
	if b.count <= b.cfg.Refill && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
	return id, ok
}

func (b *Buffer[T]) drop() {
	if b.head++; b.head == len(b.ring) {
		b.head = 0
	}
	b.count--
}

// expire drops ids that have lain too long.
func (b *Buffer[T]) expire() {
	if b.count == 0 {
		return
	}
	oldest := b.cfg.Time.Monotonic() - b.cfg.MaxAge
	for b.count > 0 && b.made[b.head] < oldest {
		b.drop()
		b.state.Expired++
	}
}

// notify wakes all who wait. The caller holds mu.
func (b *Buffer[T]) notify() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// run fills the buffer whenever it is asked to.
func (b *Buffer[T]) run(ctx context.Context) {
	defer close(b.done)
	scratch := make([]T, b.cfg.Size)
	failures := 0
	for ctx.Err() == nil {
		if idle := b.rest(); idle != nil {
			if turns.Wait(ctx, b.cfg.Time, idle) != nil {
				return
			}
			continue
		}
		if b.fill(ctx, scratch) {
			failures = 0
			continue
		}
		failures++
		d := min(minBackoff<<min(failures-1, 16), maxBackoff)
		d = d/2 + time.Duration(b.cfg.Random()%uint64(d))
		if b.cfg.Time.Sleep(ctx, d) != nil {
			return
		}
	}
}

// rest returns nil if the buffer should be filled, else what is closed when it
// should.
func (b *Buffer[T]) rest() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count <= b.cfg.Refill {
		return nil
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	return b.idle
}

// fill asks the source once for as much as fits and reports whether it made
// anything. What came with an error is used all the same.
func (b *Buffer[T]) fill(ctx context.Context, scratch []T) bool {
	b.mu.Lock()
	room := len(b.ring) - b.count
	b.state.Fills++
	b.mu.Unlock()

	n, err := b.cfg.Source.Fill(ctx, scratch[:room])
	switch {
	case n < 0 || n > room:
		n, err = 0, fmt.Errorf("%w: it says it filled %d of %d", ErrSource, n, room)
	case n == 0 && err == nil:
		err = fmt.Errorf("%w: it filled nothing and gave no error", ErrSource)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	var now time.Duration
	if b.made != nil {
		now = b.cfg.Time.Monotonic()
	}
	for _, id := range scratch[:n] {
		at := b.head + b.count
		if at >= len(b.ring) {
			at -= len(b.ring)
		}
		b.ring[at] = id
		if b.made != nil {
			b.made[at] = now
		}
		b.count++
	}
	b.err = err
	if n > 0 {
		b.err = nil // the rest is asked for next, and fails by itself if it must
	} else {
		b.state.Failures++
	}
	b.notify()
	return n > 0
}
