package issuing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// A queue shares the ids that a generator makes in a second among addresses. Requests that find none take slices in turn:
// one address after the other, and of one address one request after the other. So an address that asks for more ids than
// there are delays another address by a slice, however many requests it makes. While any request is in the queue, all go
// through it. A request that finds its ids without it pays for one reading of a number that rarely changes.
type queue struct {
	slice    int           // ids of a turn
	most     int           // ids of a request: more cannot be made in longest
	patience time.Duration // how long a request waits for a turn and its ids
	slow     error         // ends that wait, since ids may come in hours: the ticks are long, or a virtual clock begins later
	always   bool          // whether all requests enter, see newQueue
	inside   atomic.Int64  // requests

	mu    sync.Mutex // guards all below; not held while waiting
	taken bool       // a request has the turn
	next  []*line    // the lines of lines, in the order of their turns
	lines map[*share.Client]*line
}

// A line has the requests of an address that wait for their turn.
type line struct {
	of    *share.Client
	waits []chan struct{} // closed when the turn comes
}

// newQueue returns a queue whose slices have the ids of a millisecond. All requests enter it if the generator may switch
// workers: asked with a context that has ended, it would skip that policy for the next.
func newQueue(cfg lease.Config) *queue {
	g := cfg.Generator
	layout := cmp.Or(g.Layout, firn.DefaultLayout())
	tick := float64(layout.MaxSequence() + 1)
	in := func(d time.Duration) float64 { return tick * float64(d) / float64(layout.Unit()) }
	q := &queue{
		slice: int(min(max(in(time.Millisecond), 1), maxRange)), most: math.MaxInt, patience: longest + g.Rollback.Waits(),
		always: slices.Contains(g.Rollback, firn.SwitchWorker()), lines: map[*share.Client]*line{},
	}
	if g.Clock != firn.ClockVirtual { // which makes them at once
		q.most = int(min(in(longest)+in(g.Lead())+2*tick, math.MaxInt32)) // with the tick in use, and one that began before
	}
	if q.always {
		q.patience += longest + cfg.Strict // for another worker
	}
	slow := fmt.Errorf("the pool made no id for this request within %v", q.patience)
	q.slow = &store.TextError{Kind: context.DeadlineExceeded, Err: slow}
	return q
}

// take calls take until it has taken n ids. An error of take comes with the number of ids that it has taken nevertheless.
func (q *queue) take(ctx context.Context, n int, take func(ctx context.Context, n int) (int, error)) error {
	if n > q.most {
		return failure.New(http.StatusRequestEntityTooLarge, "batch_too_large",
			"count %d is more than the pool makes in %v, the longest that a request waits: ask for at most %d ids at a time", n, longest, q.most)
	}
	if !q.always && q.inside.Load() == 0 {
		got, err := take(ended, n) // what there is without waiting
		if err == nil || !errors.Is(err, context.Canceled) {
			return err
		}
		n -= got
	}
	q.inside.Add(1)
	defer q.inside.Add(-1)
	for client := share.In(ctx); n > 0; {
		got, err := q.turn(ctx, client, min(n, q.slice), take)
		if err != nil {
			return err
		}
		n -= got
	}
	return nil
}

// turn waits for a request's turn and takes a slice. It ends after a while, since nothing else would tell a client that is
// gone from one that waits, and others wait for the turn.
func (q *queue) turn(ctx context.Context, client *share.Client, n int, take func(ctx context.Context, n int) (int, error)) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, q.patience, q.slow)
	defer cancel()
	if came := q.enter(client); came != nil {
		select {
		case <-came:
		case <-ctx.Done():
			q.leave(client, came)
			return 0, context.Cause(ctx)
		}
	}
	defer q.pass() // also if take panics, since others wait
	return take(ctx, n)
}

// enter gives a request the turn and returns nil, or lets it wait until the channel is closed.
func (q *queue) enter(client *share.Client) (came chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.taken {
		q.taken = true
		return nil
	}
	l := q.lines[client]
	if l == nil {
		l = &line{of: client}
		q.lines[client], q.next = l, append(q.next, l)
	}
	came = make(chan struct{})
	l.waits = append(l.waits, came)
	return came
}

// leave ends the wait of a request that no longer needs its turn, which may have come meanwhile.
func (q *queue) leave(client *share.Client, came chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[client]
	if l == nil || !slices.Contains(l.waits, came) {
		q.passLocked()
		return
	}
	l.waits = slices.DeleteFunc(l.waits, func(c chan struct{}) bool { return c == came })
	if len(l.waits) == 0 {
		delete(q.lines, client)
		q.next = slices.DeleteFunc(q.next, func(other *line) bool { return other == l })
	}
}

// pass gives the turn to the first request of the next address.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passLocked()
}

func (q *queue) passLocked() {
	if len(q.next) == 0 {
		q.taken = false
		return
	}
	l := q.next[0]
	q.next = q.next[1:]
	close(l.waits[0])
	l.waits = l.waits[1:]
	if len(l.waits) == 0 {
		delete(q.lines, l.of)
		return
	}
	q.next = append(q.next, l)
}
