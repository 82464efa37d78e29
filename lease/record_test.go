package lease

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// Keys that are not slots of the pool are ignored, and do not hide others.
func TestKeysOfOthersAreLeftAlone(t *testing.T) {
	record := Pool{Layout: layout("41/1/4/12"), Open: true}
	if _, err := readPool("p", []store.Entry{{Key: "firn/p/pool", Value: []byte(`{"layout":"41/1/4/12","grace":"12 s"}`), Revision: 1}}); !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), `"12 s"`) {
		t.Errorf("an invalid duration: %v", err)
	}
	wide := []store.Entry{{Key: "firn/p/pool", Value: []byte(`{"layout":"40/5/5/12"}`), Revision: 1}, {Key: "firn/p/slot/19/29", Value: must(register.Encode(Slot{Fence: 9, Owner: "o"})), Revision: 2}}
	if p, err := readPool("p", wide); err != nil || p.slot(19, 29).revision != 2 {
		t.Errorf("decimal numbers: %+v, %v", p, err)
	}
	entries := []store.Entry{{Key: "firn/p/other", Value: []byte("x"), Revision: 1}, {Key: "firn/p/pool", Value: must(register.Encode(record)), Revision: 2}}
	for _, name := range []string{"slot/0/3", "slot/0/03", "slot/0/16", "slot/0/x", "slot/1/05", "slot/1/05/6", "slot/2/05", "slot/1/-5", "zone"} {
		entries = append(entries, store.Entry{Key: "firn/p/" + name, Value: must(register.Encode(Slot{Fence: 9, Owner: "o"})), Revision: 3})
	}
	p, err := readPool("p", entries)
	if err != nil || len(p.Slots) != 2 || p.slot(0, 3).revision != 3 || p.slot(1, 5).revision != 3 || p.revision != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	for text, want := range map[string]firn.Tick{`{"fence":"9","owner":"o"}`: noFence, `{"after":"0","fence":"9","owner":"o"}`: 0} {
		var s Slot
		if err := s.read(store.Entry{Key: "firn/p/slot/0/3", Value: []byte(text), Revision: 3}, record.Layout); err != nil || s.After != want {
			t.Errorf("%s begins after %d, %v", text, s.After, err)
		}
	}
	for _, text := range []string{`{"after":"3","owner":"o"}`, `{"after":"3","fence":"9"}`} {
		if err := new(Slot).read(store.Entry{Key: "firn/p/slot/0/3", Value: []byte(text), Revision: 3}, record.Layout); !errors.Is(err, store.ErrForeign) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := new(Slot).read(store.Entry{Key: "firn/p/slot/0/3", Value: []byte(`{"after":"3",`), Revision: 3}, record.Layout); !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("a record that was cut off: %v", err)
	}
	if got, want := p.slot(1, 3), (Slot{Datacenter: 1, Worker: 3, Fence: -1}); got != want {
		t.Errorf("one never used: %+v", got)
	}
	if p, err := readPool("p", entries[2:]); err != nil || p.revision != 0 || len(p.Slots) != 0 {
		t.Errorf("without its record: %+v, %v", p, err)
	}
}

func TestPoolsAreListed(t *testing.T) {
	ctx := context.Background()
	mem := memstore.New(nil)
	for _, key := range []string{"firn/b/pool", "firn/b/slot/0/1", "firn/a/pool", "firn/pool", "firn/counter:x", "firn/c/pools", "other/d/pool"} {
		must(mem.CompareAndSwap(ctx, key, 0, []byte("{}")))
	}
	if names, err := Pools(ctx, mem); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q, %v", names, err)
	}
	if err := mem.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Pools(ctx, mem); err == nil {
		t.Error("of a closed store")
	}
}

// What Reclaim writes and returns.
func TestTheRecordThatReclaimWrites(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	two := layout("41/0/1/12")
	w.mustTake(w.start(small), 1)
	w.mustTake(w.start(small), 1)
	p := must(Inspect(ctx, w.mem, "default"))
	before := p.slot(0, 1)
	began := time.Now()
	slot, err := Reclaim(ctx, w.mem, "default", 0, 1, noon.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	fence := must(two.Tick(noon.Add(time.Second)))
	if slot.Worker != 1 || slot.Fence != fence || !slot.Free || !slot.Taken || !slot.Gone || slot.Host != "host" || slot.PID != 1 || !slot.Since.Equal(before.Since) || slot.Since.IsZero() ||
		slot.At.Before(began.Add(-time.Second)) || !slot.Until.Equal(two.Time(fence+1)) || slot.Write != before.Write+1 || slot.After != fence || slot.Owner == before.Owner {
		t.Errorf("%+v, which was %+v", slot, before)
	}
	var record Slot
	if taken, again := must(Reclaim(ctx, w.mem, "default", 0, 0, time.Time{})), must(Reclaim(ctx, w.mem, "default", 0, 0, time.Time{})); !taken.Taken || !again.Taken || taken.Gone || again.Gone {
		t.Errorf("its holder may be alive: %+v, and again: %+v", taken, again)
	}
	if again := must(Reclaim(ctx, w.mem, "default", 0, 1, time.Time{})); !again.Gone {
		t.Errorf("its holder is gone: %+v", again)
	}
	if err := json.Unmarshal(must(w.mem.Get(ctx, "firn/default/slot/0/1")).Value, &record); err != nil || !record.Until.Equal(noon.Add(time.Second)) {
		t.Errorf("%+v, %v", record, err)
	}
	// The holder is quicker.
	racing := &scripted{Store: w.mem, call: func(what, key string) error {
		if what == "write" {
			w.put(key, must(register.Encode(Slot{Fence: fence, Owner: "holder"})))
		}
		return nil
	}}
	if _, err := Reclaim(ctx, racing, "default", 0, 1, time.Time{}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
	if _, err := Reclaim(ctx, w.mem, "default", 0, 1, time.Unix(0, 0)); !errors.Is(err, firn.ErrRange) {
		t.Errorf("before the epoch: %v", err)
	}
	if was, err := Relax(ctx, w.mem, "a/b"); was != 0 || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("%v, %v", was, err)
	}
	if was, err := Relax(ctx, w.mem, "missing"); was != 0 || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v, %v", was, err)
	}
}

func TestARecordFromBeforeTheToleranceWasKeptHasTheDefault(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"layout":"41/0/10/12"}`:                  defaultTolerance,
		`{"layout":"41/0/10/12","tolerance":"2s"}`: 2 * time.Second,
	} {
		p, err := readRecord(store.Entry{Key: "firn/p/pool", Value: []byte(text), Revision: 1})
		if err != nil || time.Duration(p.Tolerance) != want {
			t.Errorf("%s: %v, %v", text, p.Tolerance, err)
		}
	}
}
