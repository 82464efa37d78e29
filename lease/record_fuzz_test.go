package lease

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/store"
)

// FuzzRecords reads arbitrary values in the keys of a pool. Every accepted value is a pool
// whose slots lie within its layout.
func FuzzRecords(f *testing.F) {
	pool := `{"layout":"41/0/10/12,unit=1ms,epoch=2025-01-01T00:00:00Z","made":"2026-11-20T12:00:00Z","open":true}`
	slot := `{"fence":"59528612062","until":"2026-11-20T12:00:30Z","owner":"5ad1","write":1,"host":"h","pid":4711,"since":"2026-11-20T12:00:00Z","at":"2026-11-20T12:00:00Z"}`
	f.Add(pool, "firn/p/slot/0/0372", slot)
	f.Add(pool, "firn/p/slot/0/9999", slot)
	f.Add(pool, "firn/p/slot/0/-1", slot)
	f.Add(`{"layout":"40/0/0/0"}`, "firn/p/slot/0/-1", `{"fence":"0","owner":"o"}`)
	f.Add(pool, "firn/p/slot/0", `{"fence":"-5"}`)
	f.Add(`{"layout":"63/0/0/0"}`, "firn/p/slot/0/0", `{"fence":"9223372036854775807"}`)
	f.Add(`null`, "firn/p/slot/0/0000", `[]`)
	f.Add(``, "firn/p/other", ``)
	f.Fuzz(func(t *testing.T, poolValue, key, slotValue string) {
		entries := []store.Entry{
			{Key: poolKey("p"), Value: []byte(poolValue), Revision: 1},
			{Key: key, Value: []byte(slotValue), Revision: 2},
		}
		p, err := readPool("p", entries)
		if err != nil {
			if !errors.Is(err, store.ErrForeign) {
				t.Fatalf("%v does not match its kind", err)
			}
			return
		}
		if p.revision == 0 {
			t.Fatal("the record of the pool was not found")
		}
		for _, s := range p.Slots {
			if s.Worker < 0 || s.Worker > p.Layout.MaxWorker() || s.Datacenter < 0 || s.Datacenter > p.Layout.MaxDatacenter() {
				t.Fatalf("slot %+v in a pool of layout %v", s, p.Layout)
			}
			if s.Fence < -1 || s.Fence > p.Layout.MaxTick() {
				t.Fatalf("fence %d in a pool of layout %v", s.Fence, p.Layout)
			}
			_ = s.Until.String()
		}
		if slot, ok := (&rules{layout: p.Layout}).choose(p, 0, Ask{Now: 1 << 40}, func() uint64 { return 7 }); ok && (slot.Worker < 0 || slot.Worker > p.Layout.MaxWorker()) {
			t.Fatalf("chose %+v", slot)
		}
	})
}
