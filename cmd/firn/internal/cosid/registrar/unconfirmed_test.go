package registrar_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// unconfirmed confirms the first few writes of keys that contain part; later ones are applied
// but their answers are lost.
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

func TestANumberIsAssignedOnlyOnceTheStoreHasConfirmedIt(t *testing.T) {
	for _, part := range []string{"", "/machine/", "/instance/"} {
		for confirmed := range 2 {
			clock := firntest.NewClock(start)
			faulty := storetest.NewFaulty(memstore.New(nil))
			d := desk{open(t, faulty, clock), t}
			faulty.Script = unconfirmed(part, min(confirmed, strings.Count(part, "instance"))) // a bucket is written twice
			for range 20 {
				if got, err := d.Distribute(ctx, instance("a"), 10, fiveMinutes); err == nil {
					t.Fatalf("writes of %q are not confirmed, but number %d was assigned", part, got.Machine)
				}
				clock.Pass(time.Second)
			}
			if part != "/instance/" {
				if err := d.Guard(ctx, instance("a"), fiveMinutes); err == nil {
					t.Errorf("writes of %q are not confirmed, but a guard succeeded", part)
				}
			}
			faulty.Script = nil
			d.gives(instance("a"), 10, fiveMinutes, 0)
		}
	}
}

// A bucket may drop an instance in a write that the store is about to lose. That must not free
// the instance's number.
func TestAnUnconfirmedBucketFreesNoNumber(t *testing.T) {
	clock, s := firntest.NewClock(start), memstore.New(nil)
	faulty := storetest.NewFaulty(s)
	d := desk{open(t, faulty, clock), t}
	d.gives(stable("kept"), 1, registrar.Forever, 0)
	bucket := bucketOf(t, s, "kept")
	d.gives(stable("other"), 1, registrar.Forever, 1)
	if _, err := s.CompareAndSwap(ctx, bucket.Key, bucket.Revision, []byte(`{"machines":{}}`)); err != nil {
		t.Fatal(err)
	}
	faulty.Script = unconfirmed(bucket.Key, 0)
	if got, err := d.Distribute(ctx, instance("c"), 1, fiveMinutes); err == nil {
		t.Errorf("number %d was assigned, which another instance has", got.Machine)
	}
	faulty.Script = nil // the bucket is back at what was confirmed
	now := bucketOf(t, s, "kept")
	if _, err := s.CompareAndSwap(ctx, now.Key, now.Revision, bucket.Value); err != nil {
		t.Fatal(err)
	}
	d.guards(stable("kept"), nil)
	d.gives(stable("kept"), 1, registrar.Forever, 0)
}

// bucketOf returns the bucket of an instance.
func bucketOf(t *testing.T, s *memstore.Store, instance string) store.Entry {
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
	t.Fatalf("no bucket of %q in %v", instance, list)
	return store.Entry{}
}

func TestANumberIsReturnedByAConfirmedWrite(t *testing.T) {
	for _, part := range []string{"/machine/", "/instance/"} {
		clock := firntest.NewClock(start)
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
			t.Errorf("guard of a returned number: %v", err)
		}
	}
}
