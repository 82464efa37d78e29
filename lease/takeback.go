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
	if most := p.Layout.MaxDatacenter(); datacenter < 0 || datacenter > most {
		return Slot{}, firn.NewRangeError("datacenter", datacenter, 0, most, "layout "+p.Layout.Bits())
	}
	if most := p.Layout.MaxWorker(); worker < 0 || worker > most {
		return Slot{}, firn.NewRangeError("worker", worker, 0, most, "layout "+p.Layout.Bits())
	}
	for _, slot := range p.Slots {
		if slot.Datacenter == datacenter && slot.Worker == worker {
			return slot.takeBack(ctx, s, p, gone)
		}
	}
	return Slot{}, fmt.Errorf("lease: worker %d of pool %q: %w: it was never used", worker, pool, store.ErrNotFound)
}

func (s Slot) takeBack(ctx context.Context, in store.Store, p Pool, gone time.Time) (Slot, error) {
	if !gone.IsZero() {
		tick, err := p.Layout.Tick(gone)
		if err != nil {
			return s, err
		}
		s.Fence = min(s.Fence, tick)
	}
	now := time.Now().UTC()
	// Host and process are those of whom it was taken from: who looks is told.
	record := slotRecord{
		After: s.Fence, Fence: s.Fence, Until: p.Layout.Time(s.Fence), Free: true,
		Owner: newToken(rand.Uint64), Write: s.write + 1, Host: s.Host, PID: s.PID, Since: s.Since, At: now,
	}
	reg := register.Register{Store: in, Key: slotKey(p.Name, p.Layout, s.Datacenter, s.Worker), Time: firn.SystemTime(), Random: rand.Uint64}
	reg.Known(store.Entry{Key: reg.Key, Revision: s.revision})
	written, err := reg.Update(ctx, func(found store.Entry) ([]byte, error) {
		if found.Revision != s.revision && !reg.Ours() {
			return nil, fmt.Errorf("%w: its holder wrote it meanwhile, try again", store.ErrConflict)
		}
		return encode(record)
	})
	if err != nil {
		return s, fmt.Errorf("lease: take back worker %d of pool %q: %w", s.Worker, p.Name, err)
	}
	err = s.read(written)
	s.date(p.Layout)
	return s, err
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
		p := Pool{Name: pool}
		if found.Revision == 0 {
			return nil, store.ErrNotFound
		}
		if err := p.read(found); err != nil || p.Strict == 0 {
			return nil, err
		}
		record := p.record()
		was, record.Strict = p.Strict, ""
		return encode(record)
	})
	if err != nil {
		return 0, fmt.Errorf("lease: relax pool %q: %w", pool, err)
	}
	return was, nil
}
