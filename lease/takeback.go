package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/register"
	"github.com/firn-id/firn/store"
)

// TakeBack takes a slot away from its holder, as an operator may want to. The
// holder leaves it at its next look, for another worker. The fence stays where
// it is, so nothing is issued twice, and the worker is granted again once that
// has passed.
//
// With gone, the operator answers for it that the holder has ended and had made
// no id with a time later than that: then the fence is moved back to it, if it
// lies further ahead. Were that wrong, ids would be made twice. The zero time
// leaves the fence alone.
//
// It returns the slot as it is then. Errors: [store.ErrNotFound] when there is no
// such pool or slot, [store.ErrConflict] when the holder wrote it meanwhile, and
// the store's.
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
	fence := slot.Fence
	if !gone.IsZero() {
		tick, err := p.Layout.Tick(gone)
		if err != nil {
			return slot, err
		}
		fence = min(fence, tick)
	}
	// Host and process are those of whom it was taken from: who looks is told.
	record := slotRecord{
		After: fence, Fence: fence, Until: p.Layout.Time(fence), Free: true, Owner: register.Token(),
		Write: slot.write + 1, Host: slot.Host, PID: slot.PID, Since: slot.Since, At: time.Now().UTC(),
	}
	reg := &register.Register{Store: s, Key: slotKey(pool, p.Layout, datacenter, worker), Time: firn.SystemTime(), Random: rand.Uint64}
	written, err := replace(ctx, reg, slot.revision, func() ([]byte, error) { return encode(record) })
	if err != nil {
		return slot, fmt.Errorf("lease: take back worker %d of pool %q: %w", worker, pool, err)
	}
	err = slot.read(written, p.Layout)
	return slot, err
}

// Relax makes a strict pool one that is not: claims are used at once again, and
// those join that are not strict. It returns the strict wait that the pool had; zero
// if it was not strict, and then nothing is written.
//
// Nothing is issued twice by it: the slots and their fences stay as they are, and
// whoever holds one goes on as it began, until it is restarted. But the pool is then
// as safe as any other, and no safer: what a store forgets, claims no longer outwait.
// A process that is strict still is refused as it joins, or needs another worker,
// while anybody holds one, and makes the pool strict again when nobody does: end those
// first, or restart them without.
//
// Errors: [store.ErrNotFound] when there is no such pool, [ErrForeign], and the store's.
// It may be called again after any of them.
func Relax(ctx context.Context, s store.Store, pool string) (time.Duration, error) {
	if err := CheckPool(pool); err != nil {
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
		return encode(record)
	})
	if err != nil {
		return 0, fmt.Errorf("lease: relax pool %q: %w", pool, err)
	}
	return was, nil
}
