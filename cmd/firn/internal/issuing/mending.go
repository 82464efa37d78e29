package issuing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// again is the pause between two probes of the store of a base that cannot issue.
const again = time.Second

// A mending probes the store of a base that cannot issue until it can, without requests: a
// server that is not ready gets no requests, so otherwise it would never become ready.
// Its methods may be called concurrently.
type mending struct {
	// look does what the next request would do, but uses up no id of a counter. It returns nil
	// if the base can issue.
	look func(context.Context) error

	mu     sync.Mutex
	cancel context.CancelFunc // ends the probing in progress, or nil
	ended  chan struct{}      // closed when it has ended
	closed bool
}

// begin starts to probe the store, unless that is in progress.
func (m *mending) begin() { m.beginWith(func() {}) }

// beginWith is begin, and calls report first if it starts.
func (m *mending) beginWith(report func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.cancel != nil {
		return
	}
	report()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	m.cancel, m.ended = cancel, ended
	go func() {
		defer close(ended)
		defer cancel()
		m.run(ctx)
	}()
}

// doubt probes the store at once, and goes on with it in the background if that fails.
func (m *mending) doubt(ctx context.Context) {
	if !m.well(ctx) {
		m.begin()
	}
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

// close ends probing for good. The ctx bounds how long it waits for that.
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
