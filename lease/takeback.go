package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// TakeBack takes a slot away from its holder, for an operator. The holder leaves it at its
// next look, for another worker. The fence stays where it is, so nothing is issued twice,
// and the worker is granted again once that has passed by any clock in use.
//
// With gone, the operator guarantees that the holder has ended and made no id with a later
// time than that: then a fence that lies further ahead is moved back to it. If that is wrong,
// ids are made twice. The zero time leaves the fence alone, and so does a slot that its holder
// gave back: that fence is the last tick used.
//
// It returns the slot as it is then. Errors: [store.ErrNotFound] when there is no such pool or
// slot, [store.ErrConflict] when the holder wrote it meanwhile, and the store's.
func TakeBack(ctx context.Context, s store.Store, pool string, datacenter, worker int64, gone time.Time) (Slot, error) {
	p, err := Inspect(ctx, s, pool)
	if err != nil {
		return Slot{}, err
	}
	if err := checkSlot(p.Layout, datacenter, worker); err != nil {
		return Slot{}, err
	}
	slot := p.slot(datacenter, worker)
	if slot.revision == 0 {
		return Slot{}, fmt.Errorf("lease: worker %d of pool %q: %w: it was never used", worker, pool, store.ErrNotFound)
	}
	fence, taken := slot.Fence, !slot.Free || slot.Taken
	if taken && !gone.IsZero() { // else its holder has said how far its ids went
		tick, err := p.Layout.Tick(gone)
		if err != nil {
			return slot, err
		}
		fence = min(fence, tick)
	}
	next := slot // with the host and process it was taken from, for people
	next.After, next.Fence, next.Until = fence, fence, p.Layout.Time(fence)
	next.Free, next.Taken = true, taken
	next.Gone = next.Taken && (slot.Gone || !gone.IsZero())
	next.Owner, next.Write, next.At = register.Token(), slot.Write+1, time.Now().UTC()
	reg := &register.Register{Store: s, Key: slotKey(pool, p.Layout, datacenter, worker), Time: firn.SystemTime(), Random: rand.Uint64}
	written, err := replace(ctx, reg, slot.revision, func() ([]byte, error) { return register.Encode(next) })
	if err != nil {
		return slot, fmt.Errorf("lease: take back worker %d of pool %q: %w", worker, pool, err)
	}
	err = slot.read(written, p.Layout)
	return slot, err
}

// Relax makes a strict pool one that is not: claims are used at once again, and processes that
// are not strict may join. It returns the strict wait that the pool had, zero if it had none.
//
// It makes no duplicates: slots and fences stay, and holders go on as they began until they are
// restarted. But claims no longer outwait what a store forgets. End strict processes first:
// one that joins, or needs another worker, is refused while there is any holder, and makes the
// pool strict again when there is none, as does one that finds that the store has forgotten something.
//
// Errors: [store.ErrNotFound] when there is no such pool, [store.ErrForeign], and the store's.
// It may be called again after any of them.
func Relax(ctx context.Context, s store.Store, pool string) (time.Duration, error) {
	if err := store.CheckName("pool", pool); err != nil {
		return 0, err
	}
	var was time.Duration
	reg := register.Register{Store: s, Key: poolKey(pool), Time: firn.SystemTime(), Random: rand.Uint64}
	_, err := reg.Update(ctx, func(found store.Entry) ([]byte, error) {
		if found.Revision == 0 {
			return nil, store.ErrNotFound
		}
		record, err := readRecord(found)
		if err != nil || record.Strict == 0 {
			return nil, err
		}
		was, record.Strict = time.Duration(record.Strict), 0
		return register.Encode(record)
	})
	if err != nil {
		return 0, fmt.Errorf("lease: relax pool %q: %w", pool, err)
	}
	return was, nil
}
