package backend

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/store"
)

const (
	// maxCalls bounds the calls in flight, abandoned ones included.
	maxCalls = 256
	// reserved is how many connections only urgent calls may use: a lease makes two calls at a time.
	reserved = 3
)

// Lanes bound the calls in flight of one store, so that urgent calls ([store.Urgent]) do not wait
// behind others for a connection.
type Lanes struct{ urgent, others chan struct{} }

// NewLanes returns lanes for a client of so many connections; 0: of any number.
func NewLanes(connections int) Lanes {
	others := maxCalls
	if connections > 0 {
		others = min(others, max(connections-reserved, 1))
	}
	return Lanes{urgent: make(chan struct{}, maxCalls), others: make(chan struct{}, others)}
}

// Enter waits until a call may begin, or ctx ends. Leave must be called once the call has ended.
func (l Lanes) Enter(ctx context.Context) (leave func(), err error) {
	lane := l.others
	if store.IsUrgent(ctx) {
		lane = l.urgent
	}
	select {
	case lane <- struct{}{}:
		return func() { <-lane }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w (%d calls in flight: one of them hangs, or the client needs more connections)", store.ContextError(ctx), cap(lane))
	}
}
