package issuing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// again is the pause between two probes of the store of a base that cannot issue.
const again = time.Second

// A mending probes the store of a base that cannot issue until it can, without requests: a
// server that is not ready gets no requests, so otherwise it would never become ready.
// Its methods may be called concurrently.
type mending struct {
	// look makes the same exchange with the store as the next request would, but uses up
	// no id. It returns nil if the base can issue.
	look func(context.Context) error

	mu     sync.Mutex
	cancel context.CancelFunc // ends the probing in progress, or nil
	ended  chan struct{}      // closed when it has ended
	closed bool
}

// begin starts to probe the store, unless that is in progress.
func (m *mending) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	m.cancel, m.ended = cancel, ended
	go func() {
		defer close(ended)
		defer cancel()
		m.run(ctx)
	}()
}

// run probes until well reports true, or ctx ends.
func (m *mending) run(ctx context.Context) {
	for !m.well(ctx) {
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel = nil
}

// well probes once, and reports whether probing can stop. If not, the base has logged the
// reason and has it in its state.
func (m *mending) well(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := m.look(limited)
	return err == nil || ctx.Err() != nil || errors.Is(err, firn.ErrClosed)
}

// close ends probing for good. Ctx bounds how long it waits for that.
func (m *mending) close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	ended := m.ended
	if m.cancel != nil {
		m.cancel()
	}
	m.mu.Unlock()
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end a look at the store: %w", context.Cause(ctx))
	}
}

func (l leased) able() error {
	p := l.pool
	s := p.lease.State()
	switch {
	case s.Left < 0 && s.Fence >= p.layout.MaxTick():
		return fmt.Errorf("pool %s: %w", p.name, &firn.TimeExhaustedError{Layout: p.layout, End: p.layout.End()})
	case s.Left < 0:
		return fmt.Errorf("pool %s: the fence of worker %d passed at %s and could not be moved", p.name, s.Worker, s.Until.Format(time.RFC3339Nano))
	case s.Last != nil && p.lease.Generator().State().Last >= s.Fence:
		// Ids that run ahead of the clock come to the fence before the clock does.
		return fmt.Errorf("pool %s: the ids up to the fence of worker %d, %s, are used up, and it could not be moved",
			p.name, s.Worker, s.Until.Format(time.RFC3339Nano))
	}
	return nil
}

func (s *segments) able() error {
	st := s.name.State()
	if st.Left > 0 || st.Err == nil {
		return nil
	}
	s.mending.begin()
	return st.Err
}

func (s *sequences) able() error {
	err := s.one.State().Err
	if err != nil {
		s.mending.begin()
	}
	return err
}

// look writes the record unchanged. A read would prove too little: a store that has lost its
// primary, or whose disk is full, answers reads but accepts no writes.
func (s *sequences) look(ctx context.Context) error { return s.one.Raise(ctx, 0) }

func (s *businessNumbers) able() error {
	err := s.counter.one.State().Err
	if err == nil && s.clock != nil {
		err = s.clock.err()
	}
	if err != nil {
		s.mending.begin()
	}
	return err
}

func (s *businessNumbers) look(ctx context.Context) error {
	if s.clock != nil {
		if _, err := s.clock.read(ctx); err != nil {
			return err
		}
	}
	return s.counter.look(ctx)
}

func (*local) able() error { return nil }

// A heardClock is a store's clock that remembers whether the latest reading failed. Its
// methods may be called concurrently.
type heardClock struct {
	clock  store.Clock
	failed atomic.Pointer[error] // the error of the latest reading, or nil
	doubt  func()                // called when the outcome of a reading is unknown
	log    *slog.Logger
}

// Now implements [store.Clock].
func (c *heardClock) Now(ctx context.Context) (time.Time, error) {
	now, err := c.clock.Now(ctx)
	if err != nil && ctx.Err() != nil {
		// The caller gave up, which proves nothing about the store. But if the store hangs,
		// every caller may give up before its timeout.
		c.doubt()
		return now, err
	}
	c.note(err)
	return now, err
}

// read is Now for a probe, whose timeout is long enough: a timeout counts as a failure.
func (c *heardClock) read(ctx context.Context) (time.Time, error) {
	now, err := c.clock.Now(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) { // by the end of the service
		c.note(err)
	}
	return now, err
}

func (c *heardClock) note(err error) {
	if err == nil {
		if c.failed.Load() != nil && c.failed.Swap(nil) != nil {
			c.log.Info("the store's clock can be read again")
		}
		return
	}
	err = fmt.Errorf("read the store's clock: %w", err)
	if c.failed.Swap(&err) == nil {
		c.log.Warn("no number can be made", "error", err)
	}
}

func (c *heardClock) err() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}
