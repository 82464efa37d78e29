package registrar_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/storetest/faketime"
)

// unconfirmed has writes of keys that contain part be applied, and none be confirmed, but
// for the first few.
func unconfirmed(part string, confirmed int) func(storetest.Call) storetest.Outcome {
	return func(c storetest.Call) storetest.Outcome {
		if c.Op != storetest.OpCompareAndSwap || !strings.Contains(c.Key, part) {
			return storetest.Pass
		}
		if confirmed--; confirmed >= 0 {
			return storetest.Pass
		}
		return storetest.FailApplied
	}
}

func TestANumberIsGivenOnlyOnceTheStoreHasConfirmedIt(t *testing.T) {
	for _, part := range []string{"", "/machine/", "/instance/"} {
		for confirmed := range 2 {
			clock := faketime.New(start)
			faulty := storetest.NewFaulty(memstore.New(nil))
			d := desk{open(t, faulty, clock), t}
			faulty.Script = unconfirmed(part, min(confirmed, strings.Count(part, "instance"))) // a place is written twice
			for range 20 {
				if got, err := d.Distribute(ctx, instance("a"), 10, fiveMinutes); err == nil {
					t.Fatalf("writes of %q are not confirmed: number %d was given", part, got.Machine)
				}
				clock.Pass(time.Second)
			}
			if part != "/instance/" {
				if err := d.Guard(ctx, instance("a"), fiveMinutes); err == nil {
					t.Errorf("writes of %q are not confirmed: a guard was noted", part)
				}
			}
			faulty.Script = nil
			d.gives(instance("a"), 10, fiveMinutes, 0)
		}
	}
}

// A place that says another number, by a write that the store is about to lose, frees
// nobody's number.
func TestANumberIsNotFreedByAPlaceThatIsNotConfirmed(t *testing.T) {
	clock, s := faketime.New(start), memstore.New(nil)
	faulty := storetest.NewFaulty(s)
	d := desk{open(t, faulty, clock), t}
	d.gives(stable("kept"), 1, registrar.Forever, 0)
	place := placeOf(t, s, "kept")
	d.gives(stable("other"), 1, registrar.Forever, 1)
	if _, err := s.CompareAndSwap(ctx, place.Key, place.Revision, []byte(`{"machines":{}}`)); err != nil {
		t.Fatal(err)
	}
	faulty.Script = unconfirmed(place.Key, 0)
	if got, err := d.Distribute(ctx, instance("c"), 1, fiveMinutes); err == nil {
		t.Errorf("number %d was given, which is another's", got.Machine)
	}
	faulty.Script = nil // the place is what was confirmed
	now := placeOf(t, s, "kept")
	if _, err := s.CompareAndSwap(ctx, now.Key, now.Revision, place.Value); err != nil {
		t.Fatal(err)
	}
	d.guards(stable("kept"), nil)
	d.gives(stable("kept"), 1, registrar.Forever, 0)
}

// placeOf returns the register that says the number of an instance.
func placeOf(t *testing.T, s *memstore.Store, instance string) store.Entry {
	t.Helper()
	list, err := s.List(ctx, "firn/cosid:shop/instance/")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.Contains(string(e.Value), `"`+instance+`"`) || len(list) == 1 || string(e.Value) == `{"machines":{}}` {
			return e
		}
	}
	t.Fatalf("no place of %q in %v", instance, list)
	return store.Entry{}
}

func TestANumberIsGivenBackByAWriteThatIsConfirmed(t *testing.T) {
	for _, part := range []string{"/machine/", "/instance/"} {
		clock := faketime.New(start)
		faulty := storetest.NewFaulty(memstore.New(nil))
		d := desk{open(t, faulty, clock), t}
		d.gives(instance("a"), 10, fiveMinutes, 0)
		lost, machines := true, 0
		faulty.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op != storetest.OpCompareAndSwap {
				return storetest.Pass
			}
			if strings.Contains(c.Key, "/machine/") {
				machines++
			}
			if lost && strings.Contains(c.Key, part) {
				lost = false
				return storetest.FailApplied
			}
			return storetest.Pass
		}
		d.reverts(instance("a"), nil)
		if want := 1 + strings.Count(part, "machine"); machines != want {
			t.Errorf("a lost answer of %s: the machine was written %d times, want %d", part, machines, want)
		}
		if err := d.Guard(ctx, instance("a"), fiveMinutes); !errors.Is(err, registrar.ErrNotFound) {
			t.Errorf("guarded after it was given back: %v", err)
		}
	}
}
