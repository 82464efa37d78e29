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
// behind others for a connection, and no call waits for one inside of the client: there a call that
// has ended may keep its place.
type Lanes struct{ all, others chan struct{} }

// NewLanes returns lanes for a client of so many connections; 0: of any number.
func NewLanes(connections int) Lanes {
	all := maxCalls + reserved
	if connections > 0 {
		all = min(all, connections)
	}
	return Lanes{all: make(chan struct{}, all), others: make(chan struct{}, max(all-reserved, 1))}
}

// Enter waits until a call may begin, or ctx ends. Leave must be called once the call has ended.
func (l Lanes) Enter(ctx context.Context) (leave func(), err error) {
	if store.IsUrgent(ctx) {
		return enter(ctx, l.all)
	}
	leaveOthers, err := enter(ctx, l.others)
	if err != nil {
		return nil, err
	}
	leaveAll, err := enter(ctx, l.all)
	if err != nil {
		leaveOthers()
		return nil, err
	}
	return func() { leaveAll(); leaveOthers() }, nil
}

func enter(ctx context.Context, lane chan struct{}) (leave func(), err error) {
	select {
	case lane <- struct{}{}:
		return func() { <-lane }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w (%d calls in flight: one of them hangs, or the client needs more connections)", store.ContextError(ctx), cap(lane))
	}
}
