package issuing

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

const (
	// roomFor is how many ids may be in memory at a time in large answers, made and not yet
	// taken by their clients: some 400 MB if they are texts. A client can ask for
	// megabytes with a few bytes, on many connections, and take them slowly or never.
	roomFor = 4 << 20
	// smallAnswer is how many ids an answer may have that needs no room: connections and
	// streams are bounded themselves.
	smallAnswer = 1000
	// longestForRoom is how long a request waits for room.
	longestForRoom = time.Second
)

// room bounds the memory of large answers. Its methods may be called concurrently.
type room struct{ free *semaphore.Weighted }

func newRoom() *room { return &room{semaphore.NewWeighted(roomFor)} }

// hold has b hold the room for so many ids in the form in which ns makes them, in the place
// of what it held.
func (r *room) hold(ctx context.Context, ns *Namespace, count int, b *Batch) error {
	b.Release()
	if count <= smallAnswer || b.Consecutive {
		return nil
	}
	if _, ok := ns.numbers.(stretched); ok && ns.texts == nil && b.Compact {
		return nil // a few numbers, however many ids they stand for
	}
	// What is larger than all room has it for itself.
	need := min(int64(count), roomFor)
	if !r.free.TryAcquire(need) {
		ctx, cancel := context.WithTimeoutCause(ctx, longestForRoom, overloaded(count))
		defer cancel()
		if r.free.Acquire(ctx, need) != nil {
			return context.Cause(ctx)
		}
	}
	b.held, b.from = need, r
	return nil
}

func overloaded(count int) error {
	f := failure.New(http.StatusServiceUnavailable, "overloaded",
		"there are %d ids in large answers that their clients have not taken yet, which is the limit: ask for %d later, or for at most %d, which need not wait",
		roomFor, count, smallAnswer)
	f.Retry = time.Second
	return f
}

// Release says that what was answered with the batch is no longer in memory. Whoever lends a
// batch to [Front.Issue] calls it when the answer is written, or has failed; it may be called again.
func (b *Batch) Release() { b.Detach()() }

// Detach returns Release for an answer that goes on when the batch is used for another.
func (b *Batch) Detach() (release func()) {
	from, held := b.from, b.held
	b.from, b.held = nil, 0
	return func() {
		if held > 0 {
			from.free.Release(held)
			held = 0
		}
	}
}
