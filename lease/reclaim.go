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

// Reclaim takes a slot away from its holder, for an operator. At its next look the holder leaves it for
// another worker. The fence does not move, so no id is issued twice. The worker is granted again once
// the fence has passed by every clock in use.
//
// With gone, the operator guarantees that the holder has ended and made no id with a time after gone.
// Then a fence further ahead is moved back to gone. If the guarantee is wrong, ids are duplicated. The zero time keeps the
// fence. So does a holder that began after gone: it was taken ahead of the fence. So does a slot that its holder
// released: that fence is the last tick used.
//
// Reclaim returns the new slot. Errors: [store.ErrNotFound] when there is no such pool or slot,
// [store.ErrConflict] when the holder wrote it meanwhile, and the store's.
func Reclaim(ctx context.Context, s store.Store, pool string, datacenter, worker int64, gone time.Time) (Slot, error) {
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
	fence, taken, began := slot.Fence, !slot.Free || slot.Taken, slot.After
	if slot.Taken && slot.Began != 0 { // taken for the second time
		began = slot.Began
	}
	if taken && !gone.IsZero() { // otherwise the fence is the last tick that its holder used
		tick, err := p.Layout.Tick(gone)
		if err != nil {
			return slot, err
		}
		if began < tick { // otherwise its ids are ahead of gone, or it made none: earlier holders ran ahead of the clock
			fence = min(fence, tick)
		}
	}
	next := slot // keep the host and process that it was taken from, for people
	next.Began, next.After, next.Fence, next.Until = began, fence, fence, p.Layout.Time(fence)
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

// Relax makes a strict pool not strict: claims are used at once again, and processes without the
// setting may join. It returns the strict wait that the pool had, or zero.
//
// Relax makes no duplicates: slots and fences stay, and holders keep their settings until they are
// restarted. But claims no longer wait for holders that the store has forgotten. Stop strict processes
// first: one that needs a worker is refused while the pool has a holder, and makes the pool strict
// again when it has none or when it finds that the store has forgotten something.
//
// Errors: [store.ErrNotFound] when there is no such pool, [store.ErrForeign], and the store's.
// It may be called again after any of them.
func Relax(ctx context.Context, s store.Store, pool string) (time.Duration, error) {
	if err := checkPool(s, pool); err != nil {
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
