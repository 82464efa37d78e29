package issuing

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

const (
	// roomFor bounds the ids in memory in large answers that their clients have not yet
	// read: some 400 MB if they are texts. A client can request megabytes with a few bytes,
	// on many connections, and read them slowly or never.
	roomFor = 4 << 20
	// smallAnswer is the largest answer, in ids, that needs no room: the limits on
	// connections and streams bound small answers.
	smallAnswer = 1000
	// longestForRoom is how long a request waits for room.
	longestForRoom = time.Second
)

// room bounds the memory of large answers. Its methods may be called concurrently.
type room struct{ free *semaphore.Weighted }

func newRoom() *room { return &room{semaphore.NewWeighted(roomFor)} }

// hold reserves room in b for count ids of ns, instead of the room that b held before. Call it for more ids than a
// small answer has.
func (r *room) hold(ctx context.Context, ns *Namespace, count int, b *Batch) error {
	b.Release()
	if b.Consecutive {
		return nil
	}
	if _, ok := ns.numbers.(stretched); ok && ns.texts == nil && b.Compact {
		return nil // a few numbers, however many ids they stand for
	}
	// An answer above the total room takes all of it.
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

// Release frees the room of the batch's answer. The caller of [Front.Issue] calls it when
// the answer is written or has failed. It may be called again.
func (b *Batch) Release() { b.Detach()() }

// Detach returns Release for an answer that outlasts the next use of the batch.
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
