package memstore_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

func TestItIsAStore(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		Open:   func(*testing.T) store.Store { return memstore.New(nil) },
		Delete: func(_ *testing.T, s store.Store, key string) { s.(*memstore.Store).Delete(key) },
	})
}

func put(t *testing.T, s store.Store, key string, old store.Revision, value string) store.Revision {
	t.Helper()
	e, err := s.CompareAndSwap(context.Background(), key, old, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return e.Revision
}

func TestARestoredSnapshotIsAsItWasAndGivesNoRevisionAgain(t *testing.T) {
	ctx := context.Background()
	s := memstore.New(nil)
	first := put(t, s, "k", 0, "first")
	snapshot := s.Snapshot()
	second := put(t, s, "k", first, "second")
	put(t, s, "other", 0, "")
	s.Restore(snapshot)
	if e, err := s.Get(ctx, "k"); err != nil || string(e.Value) != "first" || e.Revision != first {
		t.Errorf("got %q of %d, %v", e.Value, e.Revision, err)
	}
	if _, err := s.Get(ctx, "other"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a key made later is still there: %v", err)
	}
	again := put(t, s, "k", first, "again")
	if again == second {
		t.Error("the revision of a write that was undone came back")
	}
	s.Restore(snapshot)
	if e, err := s.Get(ctx, "k"); err != nil || string(e.Value) != "first" {
		t.Errorf("restored for a second time: %q, %v", e.Value, err)
	}
	s.Restore(nil)
	if list, err := s.List(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("wiped: %v, %v", list, err)
	}
	put(t, s, "k", 0, "again")
}

func TestARestoreBeginsNoLife(t *testing.T) {
	s := memstore.New(nil)
	var lives [2]string
	for i := range lives {
		s.Restore(nil)
		e, err := s.CompareAndSwap(context.Background(), "k", 0, nil)
		if lives[i] = e.Life; err != nil || e.Life == "" || e.Life != lives[0] {
			t.Errorf("lives %q, %v", lives, err)
		}
	}
}

func TestTheSameSeedGivesTheSameRevisions(t *testing.T) {
	run := func() (revisions [3]store.Revision) {
		s := memstore.New(rand.New(rand.NewPCG(7, 7)).Uint64)
		for i := range revisions {
			var old store.Revision
			if i > 0 {
				old = revisions[i-1]
			}
			revisions[i] = put(t, s, "k", old, "")
		}
		return revisions
	}
	if a, b := run(), run(); a != b {
		t.Errorf("%v, then %v", a, b)
	}
}

func TestARevisionIsPositive(t *testing.T) {
	for _, bits := range []uint64{0, 1, 1 << 63, math.MaxUint64} {
		if r := put(t, memstore.New(func() uint64 { return bits }), "k", 0, ""); r <= 0 {
			t.Errorf("%x gives %d: zero would stand for a key that does not exist", bits, r)
		}
	}
}

func TestItIsEmbedded(t *testing.T) {
	if !memstore.New(nil).Traits().Embedded {
		t.Error("a new pool would wait for holders there cannot be")
	}
}

// Otherwise a write over a state that is long gone would succeed.
func TestNoRevisionComesTwiceWhateverIsDrawn(t *testing.T) {
	n := uint64(0)
	for name, random := range map[string]func() uint64{
		"a constant": func() uint64 { return 7 },
		"all bits":   func() uint64 { return math.MaxUint64 },
		"one or two": func() uint64 { n++; return n % 2 << 40 },
		"upwards":    func() uint64 { n++; return n << 32 },
		"downwards":  func() uint64 { n--; return n },
	} {
		s := memstore.New(random)
		first := put(t, s, "k", 0, "")
		seen := map[store.Revision]bool{first: true}
		for before := first; len(seen) < 1000; {
			now := put(t, s, "k", before, "")
			if seen[now] {
				t.Fatalf("%s: revision %d comes again, after %d", name, now, len(seen))
			}
			seen[now], before = true, now
		}
		if e, err := s.CompareAndSwap(context.Background(), "k", first, nil); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %+v was written over the first revision, %v", name, e, err)
		}
	}
}
