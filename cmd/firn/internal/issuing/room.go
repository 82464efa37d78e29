package issuing

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

const (
	// roomFor bounds the ids in memory in large answers that their clients have not yet read.
	roomFor = share.MaxIDs
	// smallAnswer is the largest answer, in ids, that needs no room: the limits on
	// connections and streams bound small answers.
	smallAnswer = 100
	// textCost is how many numbers occupy as much as a text: 200 bytes, beside 30, with those of the answer.
	textCost = 4
	// longestForRoom is how long a request waits for room.
	longestForRoom = time.Second
)

// room bounds the memory of large answers. Its methods may be called concurrently.
type room struct{ free *semaphore.Weighted }

func newRoom() *room { return &room{semaphore.NewWeighted(roomFor)} }

// hold reserves room in b for count ids of ns, instead of the room that b held before. Call it for more ids than a
// small answer has.
func (r *room) hold(ctx context.Context, client *share.Client, ns *Namespace, count int, b *Batch) error {
	b.Release()
	if b.Consecutive {
		return nil
	}
	if _, ok := ns.numbers.(stretched); ok && ns.texts == nil && b.Compact {
		return nil // a few numbers, however many ids they stand for
	}
	// An answer above the room takes all of it.
	need := int64(count)
	if ns.texts != nil {
		need *= textCost
	}
	need = min(need, roomFor)
	if !r.try(client, need) {
		if client.Waits() {
			return errNoRoom
		}
		ctx, cancel := context.WithTimeoutCause(ctx, longestForRoom, errNoRoom)
		defer cancel()
		b.IDs, b.Texts, b.Stretches = nil, nil, nil // those of an earlier answer would be memory beside the room
		if !client.WaitForIDs(ctx, need) {
			return cmp.Or(context.Cause(ctx), errNoRoom)
		}
		if r.free.Acquire(ctx, need) != nil {
			client.GiveIDs(need)
			return context.Cause(ctx)
		}
	}
	b.held, b.from, b.client = need, r, client
	return nil
}

// try takes room that is free, first that of the client's address.
func (r *room) try(client *share.Client, need int64) bool {
	if !client.TryIDs(need) {
		return false
	}
	if !r.free.TryAcquire(need) {
		client.GiveIDs(need)
		return false
	}
	return true
}

// errNoRoom is made once: a client that left answers unread gets thousands of it a second.
var errNoRoom error = failure.New(http.StatusServiceUnavailable, "overloaded",
	"there are too many ids in answers that their clients have not taken yet: room for %d numbers, or a quarter as many texts, and limits.share of it for one address: ask later, or for at most %d ids, which need not wait",
	roomFor, smallAnswer).After(time.Second)

// maxKept bounds the ids whose memory is kept for later requests.
const maxKept = 128 << 10

// Batch returns a batch for a request, with the memory of an earlier one. Recycle takes it back.
func (s *Service) Batch() *Batch {
	if b, ok := s.batches.Get().(*Batch); ok {
		return b
	}
	return new(Batch)
}

// Recycle releases a batch, and keeps its memory unless it is large.
func (s *Service) Recycle(b *Batch) {
	b.Release()
	b.Compact, b.Consecutive = false, false
	if max(cap(b.IDs), cap(b.Stretches), cap(b.Texts)) <= maxKept {
		s.batches.Put(b)
	}
}

// Release frees the room of the batch's answer. The caller of [Front.Issue] calls it when
// the answer is written or has failed. It may be called again.
func (b *Batch) Release() { b.Detach()() }

// Detach returns Release for an answer that outlasts the next use of the batch.
func (b *Batch) Detach() (release func()) {
	from, client, held := b.from, b.client, b.held
	b.from, b.client, b.held = nil, nil, 0
	return func() {
		if held > 0 {
			from.free.Release(held)
			client.GiveIDs(held)
			held = 0
		}
	}
}
