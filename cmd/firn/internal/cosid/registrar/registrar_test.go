package registrar_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

const fiveMinutes = 300_000

var (
	ctx   = context.Background()
	start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

func open(t testing.TB, s store.Store, clock firn.TimeSource) *registrar.Registrar {
	t.Helper()
	return registrar.New(registrar.Config{Store: s, Time: clock})
}

func instance(name string) registrar.Instance {
	return registrar.Instance{Namespace: "shop", Name: name}
}

func stable(name string) registrar.Instance {
	of := instance(name)
	of.Stable = true
	return of
}

// A desk is a registrar with methods that assert its answers.
type desk struct {
	*registrar.Registrar
	t testing.TB
}

func (d desk) gives(of registrar.Instance, bits int, guard int64, want int) registrar.State {
	d.t.Helper()
	got, err := d.Distribute(ctx, of, bits, guard)
	if err != nil || got.Machine != want {
		d.t.Fatalf("%s gets %d, %v, want %d", of.Name, got.Machine, err, want)
	}
	return got
}

func (d desk) refuses(of registrar.Instance, bits int, guard int64, want error) {
	d.t.Helper()
	if got, err := d.Distribute(ctx, of, bits, guard); !errors.Is(err, want) {
		d.t.Fatalf("%s gets %d, %v, want %v", of.Name, got.Machine, err, want)
	}
}

func (d desk) guards(of registrar.Instance, want error) {
	d.t.Helper()
	if err := d.Guard(ctx, of, fiveMinutes); !errors.Is(err, want) || (want == nil && err != nil) {
		d.t.Fatalf("guard of %s: %v, want %v", of.Name, err, want)
	}
}

func (d desk) reverts(of registrar.Instance, want error) {
	d.t.Helper()
	if err := d.Revert(ctx, of); !errors.Is(err, want) || (want == nil && err != nil) {
		d.t.Fatalf("revert of %s: %v, want %v", of.Name, err, want)
	}
}

func TestAnInstanceGetsItsOwnThenAReturnedThenAnUnusedThenASilentNumber(t *testing.T) {
	clock := firntest.NewClock(start)
	d := desk{open(t, memstore.New(nil), clock), t}
	a, b, c, e := instance("a"), instance("b"), instance("c"), instance("e")
	d.gives(a, 2, fiveMinutes, 0)
	d.gives(b, 2, fiveMinutes, 1)
	d.gives(a, 2, fiveMinutes, 0)
	d.reverts(a, nil)
	d.gives(c, 2, fiveMinutes, 0) // returned
	d.gives(a, 2, fiveMinutes, 2) // unused
	d.gives(instance("d"), 2, fiveMinutes, 3)
	d.refuses(e, 2, fiveMinutes, registrar.ErrOverflow)
	clock.Pass(4 * time.Minute)
	d.guards(a, nil)
	d.guards(c, nil)
	clock.Pass(time.Minute)
	d.gives(e, 2, fiveMinutes, 1) // b and d have been silent for five minutes; b's stamp sorts first
	d.guards(b, registrar.ErrLost)
	d.reverts(b, nil)
	d.guards(b, registrar.ErrNotFound)
	d.reverts(b, registrar.ErrNotFound)
	d.gives(b, 2, fiveMinutes, 3)
}

func TestAStableInstanceKeepsItsNumber(t *testing.T) {
	clock := firntest.NewClock(start)
	d := desk{open(t, memstore.New(nil), clock), t}
	d.gives(stable("db-0"), 1, fiveMinutes, 0)
	d.gives(instance("forever"), 1, registrar.Forever, 1)
	clock.Pass(1000 * time.Hour)
	d.refuses(instance("b"), 1, fiveMinutes, registrar.ErrOverflow)
	d.reverts(stable("db-0"), nil)
	clock.Pass(1000 * time.Hour)
	d.refuses(instance("b"), 1, fiveMinutes, registrar.ErrOverflow)
	d.gives(stable("db-0"), 1, fiveMinutes, 0)
	d.reverts(instance("db-0"), nil) // an operator frees an instance that is gone for good
	d.gives(instance("b"), 1, fiveMinutes, 0)
}

func TestANumberThatNoBucketListsIsReclaimedWhenNumbersRunOut(t *testing.T) {
	s := memstore.New(nil)
	orphan := []byte(`{"instance":"a","held":true,"stable":true,"stamp":1}`)
	if _, err := s.CompareAndSwap(ctx, "firn/cosid:shop/machine/00000001", 0, orphan); err != nil {
		t.Fatal(err)
	}
	d := desk{open(t, s, firntest.NewClock(start)), t}
	d.gives(stable("b"), 1, registrar.Forever, 0)
	d.gives(stable("c"), 1, registrar.Forever, 1)
	d.refuses(stable("d"), 1, registrar.Forever, registrar.ErrOverflow)
}

func TestAnInstanceThatNeverLosesItsNumberNeverTakesAnothers(t *testing.T) {
	clock := firntest.NewClock(start)
	d := desk{open(t, memstore.New(nil), clock), t}
	d.gives(instance("a"), 1, fiveMinutes, 0)
	d.gives(instance("b"), 1, fiveMinutes, 1)
	clock.Pass(time.Hour)
	d.refuses(stable("c"), 1, fiveMinutes, registrar.ErrOverflow)
	d.refuses(instance("c"), 1, registrar.Forever, registrar.ErrOverflow)
	d.gives(instance("c"), 1, fiveMinutes, 0)
}

func TestTheLongerSafeGuardTimeCounts(t *testing.T) {
	clock := firntest.NewClock(start)
	d := desk{open(t, memstore.New(nil), clock), t}
	d.gives(instance("a"), 1, fiveMinutes, 0)
	d.gives(instance("b"), 1, 60_000, 1)
	clock.Pass(2 * time.Minute)
	d.refuses(instance("c"), 1, fiveMinutes, registrar.ErrOverflow)
	d.gives(instance("c"), 1, 1, 1)
	d.refuses(instance("e"), 1, 1, registrar.ErrOverflow)
}

func TestStampsNeverDecrease(t *testing.T) {
	clock := firntest.NewClock(start)
	d := desk{open(t, memstore.New(nil), clock), t}
	first := d.gives(instance("a"), 10, fiveMinutes, 0)
	if first.Stamp != start.UnixMilli() {
		t.Errorf("stamp %d, want %d", first.Stamp, start.UnixMilli())
	}
	clock.Step(-time.Hour)
	d.guards(instance("a"), nil)
	if again := d.gives(instance("a"), 10, fiveMinutes, 0); again.Stamp != first.Stamp {
		t.Errorf("stamp %d after the clock went back, want %d", again.Stamp, first.Stamp)
	}
	d.reverts(instance("a"), nil)
	if next := d.gives(instance("b"), 10, fiveMinutes, 0); next.Stamp != first.Stamp {
		t.Errorf("the next holder has stamp %d, want %d", next.Stamp, first.Stamp)
	}
}

func TestServersShareTheirState(t *testing.T) {
	clock, s := firntest.NewClock(start), memstore.New(nil)
	one, two := desk{open(t, s, clock), t}, desk{open(t, s, clock), t}
	one.gives(instance("a"), 10, fiveMinutes, 0)
	two.gives(instance("a"), 10, fiveMinutes, 0)
	two.guards(instance("a"), nil)
	two.gives(instance("b"), 10, fiveMinutes, 1)
	one.guards(instance("b"), nil)
	two.reverts(instance("a"), nil)
	one.guards(instance("a"), registrar.ErrNotFound)
}

func TestANumberAboveTheRequestedBitsIsAnOverflow(t *testing.T) {
	d := desk{open(t, memstore.New(nil), firntest.NewClock(start)), t}
	for i := range 3 {
		d.gives(instance(fmt.Sprint(i)), 4, fiveMinutes, i)
	}
	d.refuses(instance("2"), 1, fiveMinutes, registrar.ErrOverflow)
	d.guards(instance("2"), nil) // it still has its number
}

func TestNamespacesAreIndependent(t *testing.T) {
	d := desk{open(t, memstore.New(nil), firntest.NewClock(start)), t}
	d.gives(instance("a"), 10, fiveMinutes, 0)
	d.gives(registrar.Instance{Namespace: "shop2", Name: "b"}, 10, fiveMinutes, 0)
}

func TestMaxMachinesLimitsTheNumbersInUse(t *testing.T) {
	r := registrar.New(registrar.Config{Store: memstore.New(nil), Time: firntest.NewClock(start), MaxMachines: 2})
	d := desk{r, t}
	d.gives(instance("a"), 31, fiveMinutes, 0)
	d.gives(instance("b"), 31, fiveMinutes, 1)
	d.refuses(instance("c"), 31, fiveMinutes, registrar.ErrOverflow)
}

// TestInstancesThatAreGoneAreDropped lets containers come and go whose names hash to two
// buckets: some return their number, some fall silent.
func TestInstancesThatAreGoneAreDropped(t *testing.T) {
	clock, s := firntest.NewClock(start), memstore.New(nil)
	r := open(t, s, clock)
	names := namesIn(2, 300)
	for i, name := range names {
		if _, err := r.Distribute(ctx, instance(name), 3, fiveMinutes); err != nil {
			t.Fatal(err)
		}
		clock.Pass(3 * time.Minute)
		if i%2 == 1 {
			if err := r.Revert(ctx, instance(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := s.List(ctx, "firn/cosid:shop/instance/")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 {
		t.Fatalf("%d buckets are in use, want 2", len(list))
	}
	for _, e := range list {
		if n := strings.Count(string(e.Value), "pod-"); n > 16 {
			t.Errorf("%s has %d instances", e.Key, n)
		}
	}
}

// namesIn returns names that hash to the first few buckets.
func namesIn(buckets uint64, count int) []string {
	var names []string
	for i := 0; len(names) < count; i++ {
		name := fmt.Sprint("pod-", i)
		sum := sha256.Sum256([]byte(name))
		if binary.BigEndian.Uint64(sum[:])%1024 < buckets {
			names = append(names, name)
		}
	}
	return names
}

func TestBadInputIsRefused(t *testing.T) {
	d := desk{open(t, memstore.New(nil), firntest.NewClock(start)), t}
	for _, bits := range []int{-1, 0, 32} {
		d.refuses(instance("a"), bits, fiveMinutes, firn.ErrRange)
	}
	for _, guard := range []int64{-1, 0} {
		d.refuses(instance("a"), 10, guard, firn.ErrRange)
	}
	d.refuses(instance(""), 10, fiveMinutes, firn.ErrSyntax)
	d.refuses(registrar.Instance{Namespace: "a/b", Name: "a"}, 10, fiveMinutes, firn.ErrSyntax)
}

func TestForeignContentIsRefused(t *testing.T) {
	for key, value := range map[string]string{
		"firn/cosid:shop/machine/00000000": "not ours",
		"firn/cosid:shop/machine/x":        `{"instance":"a","stamp":1}`,
		"firn/cosid:shop/machine/00000001": `{"held":true}`,
	} {
		s := memstore.New(nil)
		if _, err := s.CompareAndSwap(ctx, key, 0, []byte(value)); err != nil {
			t.Fatal(err)
		}
		d := desk{open(t, s, firntest.NewClock(start)), t}
		d.refuses(instance("a"), 10, fiveMinutes, store.ErrForeign)
	}
}

// clocked is a store with a clock.
type clocked struct {
	store.Store
	at func() time.Time
}

func (c clocked) Traits() store.Traits { return store.Traits{Clock: c} }

func (c clocked) Now(context.Context) (time.Time, error) { return c.at(), nil }

func TestTheStoresClockIsUsed(t *testing.T) {
	clock := firntest.NewClock(start)
	offset := 5 * time.Second
	d := desk{open(t, clocked{memstore.New(nil), func() time.Time { return clock.Wall().Add(offset) }}, clock), t}
	if got := d.gives(instance("a"), 10, fiveMinutes, 0); got.Stamp != start.Add(offset).UnixMilli() {
		t.Errorf("stamp %d, want the store's %d", got.Stamp, start.Add(offset).UnixMilli())
	}
	offset = 11 * time.Second
	d.refuses(instance("b"), 10, fiveMinutes, registrar.ErrClock)
	d.guards(instance("a"), registrar.ErrClock)
	d.reverts(instance("a"), registrar.ErrClock)
}

func TestConcurrentInstancesGetOneNumberEach(t *testing.T) {
	const instances, servers = 256, 3
	s := memstore.New(nil)
	var wait sync.WaitGroup
	var got [servers][instances]registrar.State
	for server := range servers {
		r := open(t, s, firn.SystemTime())
		for i := range instances {
			wait.Go(func() {
				var err error
				if got[server][i], err = r.Distribute(ctx, instance(fmt.Sprint("i", i)), 8, fiveMinutes); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	seen := map[int]int{}
	for i := range instances {
		for server := range servers {
			if got[server][i].Machine != got[0][i].Machine {
				t.Errorf("instance %d has numbers %d and %d", i, got[0][i].Machine, got[server][i].Machine)
			}
		}
		if other, ok := seen[got[0][i].Machine]; ok {
			t.Errorf("instances %d and %d have number %d", i, other, got[0][i].Machine)
		}
		seen[got[0][i].Machine] = i
	}
}
