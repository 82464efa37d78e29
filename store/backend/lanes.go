package backend

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	// maxCalls bounds the calls in flight, abandoned ones included.
	maxCalls = 256
	// reserved is how many connections only urgent calls may use: a lease makes two calls at a time.
	reserved = 3
	// maxListings bounds listings; one place is for urgent ones. Clients take about five times the bytes of
	// an answer, and a hostile store would answer all listings at once with 64 MiB. Fewer would delay the pools of a process
	// that join over a distant store.
	maxListings = 4
)

// Lanes bound the calls in flight of one store, so that urgent calls ([store.Urgent]) do not wait
// behind others for a connection, and no call waits for one inside of the client: there a call that
// has ended may keep its place.
//
// Calls begin in turn, but the newest is the next once the oldest has waited for a quarter of its time.
// Otherwise all may wait until they have too little time left to connect, give their place to one that has
// waited as long, and none succeeds ever again.
type Lanes struct {
	most, mostOthers int
	listings         *Lanes // nil: these are for listings

	mu          sync.Mutex
	all, others int // in flight; others are not urgent
	waiting     []*waiter
}

type waiter struct {
	urgent bool
	late   time.Time     // when it has waited too long; zero: never
	turn   chan struct{} // closed when it may begin
}

// NewLanes returns lanes for a client of so many connections; 0: of any number.
func NewLanes(connections int) *Lanes {
	all := maxCalls + reserved
	if connections > 0 {
		all = min(all, connections)
	}
	others := max(all-reserved, 1)
	listings := min(maxListings, others) // looks of leases find a connection beside them
	return &Lanes{most: all, mostOthers: others, listings: &Lanes{most: listings, mostOthers: max(listings-1, 1)}}
}

// List waits until a listing may begin, or ctx ends: at most four are made at a time. A listing waits before it enters a lane,
// so that no other call waits behind it. End must be called when its call has ended.
func (l *Lanes) List(ctx context.Context) (end func(), err error) { return l.listings.Enter(ctx) }

// enterListing is List, then Enter. Leave ends both.
func (l *Lanes) enterListing(ctx context.Context) (leave func(), err error) {
	end, err := l.List(ctx)
	if err != nil {
		return nil, err
	}
	left, err := l.Enter(ctx)
	if err != nil {
		end()
		return nil, err
	}
	return func() {
		left()
		end()
	}, nil
}

// Enter waits until a call may begin, or ctx ends. Leave must be called once the call has ended.
func (l *Lanes) Enter(ctx context.Context) (leave func(), err error) {
	w := &waiter{urgent: store.IsUrgent(ctx), turn: make(chan struct{})}
	if end, ok := ctx.Deadline(); ok {
		now := time.Now()
		w.late = now.Add(end.Sub(now) / 4)
	}
	leave = func() { l.leave(w.urgent) }
	l.mu.Lock()
	if l.free(w) {
		l.mu.Unlock()
		return leave, nil
	}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.waiting, w)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // its turn came at the same moment
		leave()
	}
	most := l.mostOthers
	if w.urgent {
		most = l.most
	}
	if l.listings == nil {
		return nil, fmt.Errorf("%w (it waited for other listings: %d of a store are made at a time)", store.ContextError(ctx), most)
	}
	return nil, fmt.Errorf("%w (%d calls in flight: one of them hangs, or the client needs more connections)", store.ContextError(ctx), most)
}

// free takes a place if there is one.
func (l *Lanes) free(w *waiter) bool {
	if l.all == l.most || !w.urgent && l.others == l.mostOthers {
		return false
	}
	if l.all++; !w.urgent {
		l.others++
	}
	return true
}

// leave gives a place back, to an urgent waiter if there is one.
func (l *Lanes) leave(urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all--; !urgent {
		l.others--
	}
	for _, urgent := range []bool{true, false} {
		if w := l.next(urgent); w != nil && l.free(w) {
			l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
			close(w.turn)
		}
	}
}

// next returns the waiter whose turn it is, of the urgent ones or of the others.
func (l *Lanes) next(urgent bool) *waiter {
	is := func(w *waiter) bool { return w.urgent == urgent }
	i := slices.IndexFunc(l.waiting, is)
	if i < 0 {
		return nil
	}
	if late := l.waiting[i].late; late.IsZero() || time.Now().Before(late) {
		return l.waiting[i]
	}
	for _, w := range slices.Backward(l.waiting) {
		if is(w) {
			return w
		}
	}
	return nil
}
