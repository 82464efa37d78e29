package issuing_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A distant store is on a server, which may be wiped. It fails while it is away, and counts calls.
type distant struct {
	*memstore.Store
	away          atomic.Bool
	reads, writes atomic.Int64
	refused       atomic.Value // the key that is not written
}

func (*distant) Traits() store.Traits { return store.Traits{} }

func (d *distant) Get(ctx context.Context, key string) (store.Entry, error) {
	if d.reads.Add(1); d.away.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	return d.Store.Get(ctx, key)
}

func (d *distant) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if d.writes.Add(1); d.refused.Load() == key {
		return store.Entry{}, store.ErrRefused
	}
	return d.Store.CompareAndSwap(ctx, key, old, value)
}

const fourCounters = `namespaces:
  orders: {kind: segment}
  halves: {kind: segment, offset: 1, stride: 2}
  txn: {kind: sequence}
  bills: {kind: number, template: "N{n:9}"}
  unused: {kind: segment}
  other: {kind: uuid}
`

var counterNames = []string{"orders", "halves", "txn", "bills"}

// issued takes ids of counters, of which none may have been made before.
func issued(t *testing.T, s *issuing.Service, made map[string]bool, n int, names ...string) {
	t.Helper()
	f := s.Front(issuing.HTTP)
	for _, name := range names {
		var b issuing.Batch
		if err := take(t, f, local(t, f), name, n, &b); err != nil {
			t.Fatal(err)
		}
		for _, id := range b.IDs {
			b.Texts = append(b.Texts, fmt.Sprint(id))
		}
		for _, text := range b.Texts {
			if text = name + " " + text; made[text] {
				t.Errorf("%s again", text)
			}
			made[text] = true
		}
		b.Release()
	}
}

// After its store was wiped or set back, a running server gets no requests, or has enough ids in memory. A server that
// starts a few seconds later repeats none of its ids.
func TestAServerRaisesItsCountersInAStoreThatForgotThem(t *testing.T) {
	for how, lose := range map[string]func(d *distant, before memstore.Snapshot){
		"wiped":                      func(d *distant, _ memstore.Snapshot) { d.Restore(nil) },
		"an older copy":              func(d *distant, before memstore.Snapshot) { d.Restore(before) },
		"noticed first by a request": func(d *distant, _ memstore.Snapshot) { d.Restore(nil) },
		"wiped while away":           func(d *distant, _ memstore.Snapshot) { d.Restore(nil); d.away.Store(true) },
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &distant{Store: memstore.New(nil)}
				registry := prometheus.NewRegistry()
				running := opened(t, d, fourCounters, func(cfg *issuing.Config) { cfg.Registry = registry })
				made := map[string]bool{}
				issued(t, running, made, 5, counterNames...)
				before := d.Snapshot()
				issued(t, running, made, 2000, counterNames...) // more than one range
				time.Sleep(time.Minute)
				lose(d, before)
				if how == "noticed first by a request" {
					issued(t, running, made, 3000, "orders")
				}
				if time.Sleep(10 * time.Second); d.away.Swap(false) {
					time.Sleep(10 * time.Second)
				}
				issued(t, opened(t, d, fourCounters), made, 3000, counterNames...)
				issued(t, running, made, 3000, counterNames...)
				if got := setBacks(t, registry); got != float64(len(counterNames)) {
					t.Errorf("%v set backs are counted", got)
				}
			})
		})
	}
}

// It costs a read of a counter every few seconds, and no write.
func TestAServerThatLooksAtItsCountersWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &distant{Store: memstore.New(nil)}
		s := opened(t, d, fourCounters)
		issued(t, s, map[string]bool{}, 5, counterNames...)
		time.Sleep(time.Minute + time.Second) // between two looks
		d.reads.Store(0)
		d.writes.Store(0)
		time.Sleep(time.Minute)
		if d.writes.Load() != 0 || d.reads.Load() != 20*4 {
			t.Errorf("in a minute without a request %d reads and %d writes", d.reads.Load(), d.writes.Load())
		}
	})
}

// A counter that somebody made foreign meanwhile does not keep the others from being looked at, nor makes the log long.
func TestACounterThatCannotBeRaisedIsNoReasonToLookAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &distant{Store: memstore.New(nil)}
		s := opened(t, d, fourCounters)
		made := map[string]bool{}
		issued(t, s, made, 5, counterNames...)
		time.Sleep(time.Minute + time.Second)
		d.Restore(nil)
		if _, err := d.Store.CompareAndSwap(t.Context(), "firn/counter:txn", 0, []byte("mine")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		d.reads.Store(0)
		time.Sleep(time.Minute)
		if n := d.reads.Load(); n != 20*4 {
			t.Errorf("%d reads in a minute", n)
		}
		for _, name := range []string{"orders", "halves", "bills"} {
			if e, err := d.Store.Get(t.Context(), "firn/counter:"+name); err != nil || !strings.Contains(string(e.Value), "{") {
				t.Errorf("%s: %s, %v", name, e.Value, err)
			}
		}
	})
}

// lacks returns the namespaces whose counter the store does not have.
func (d *distant) lacks(names ...string) (missing []string) {
	for _, name := range names {
		if _, err := d.Store.Get(context.Background(), "firn/counter:"+name); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// Each loss counts, though a look has raised the counters after the one before.
func TestAServerRaisesItsCountersAfterEachLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &distant{Store: memstore.New(nil)}
		registry := prometheus.NewRegistry()
		var log strings.Builder
		s := opened(t, d, fourCounters, func(cfg *issuing.Config) {
			cfg.Registry, cfg.Log = registry, slog.New(slog.NewTextHandler(&log, nil))
		})
		issued(t, s, map[string]bool{}, 5, counterNames...)
		for losses := 1; losses <= 3; losses++ {
			time.Sleep(time.Minute)
			d.Restore(nil)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if missing, n := d.lacks(counterNames...), setBacks(t, registry); missing != nil || int(n) != losses*len(counterNames) {
				t.Errorf("after loss %d the store lacks %q, and %v set backs are counted", losses, missing, n)
			}
			if n := strings.Count(log.String(), "it looks at all counters"); n != losses {
				t.Errorf("after loss %d this is logged %d times:\n%s", losses, n, log.String())
			}
		}
	})
}

// Two servers use a counter. Whoever looks first raises it, and does not know of what the other has beside it.
func TestAServerRaisesItsCountersThoughAnotherHasRepairedOneOfThem(t *testing.T) {
	for _, kind := range []string{"segment", "sequence"} {
		for phase := range 6 {
			synctest.Test(t, func(t *testing.T) {
				d := &distant{Store: memstore.New(nil)}
				text := fmt.Sprintf("namespaces:\n  orders: {kind: %s}\n  users: {kind: %[1]s}\n", kind)
				a := opened(t, d, text)
				time.Sleep(time.Second + time.Second/2) // they look in turn
				b := opened(t, d, text)
				made := map[string]bool{}
				issued(t, a, made, 5, "users", "orders")
				issued(t, b, made, 5, "orders")
				time.Sleep(time.Minute + time.Duration(phase)*500*time.Millisecond)
				d.Restore(nil)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if missing := d.lacks("orders", "users"); missing != nil {
					t.Errorf("%s, phase %d: the store lacks %q", kind, phase, missing)
				}
			})
		}
	}
}

// Many counters are looked at in turn, and all at once after the loss of the slot of a worker.
func TestAServerLooksAtItsCountersInTurnOrAtAllAfterTheLossOfAWorker(t *testing.T) {
	for slot, within := range map[bool]time.Duration{true: 6500 * time.Millisecond, false: 80 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)))
			d := &distant{Store: memstore.New(nil)}
			text, names := "namespaces:\n  ids: {pool: shop, layout: 41/0/0/12}\n", []string{}
			for i := range 400 {
				names = append(names, fmt.Sprintf("n%03d", i))
				text += "  " + names[i] + ": {kind: segment}\n"
			}
			s := opened(t, d, text)
			issued(t, s, map[string]bool{}, 1, names...)
			time.Sleep(time.Minute) // the looks have come to n319
			lost := names[100:110]
			for _, name := range lost {
				d.Delete("firn/counter:" + name)
			}
			if slot {
				d.Delete("firn/shop/slot/0/0")
			}
			time.Sleep(within)
			synctest.Wait()
			if missing := d.lacks(lost...); missing != nil {
				t.Errorf("the slot was lost too: %t; after %v the store lacks %q", slot, within, missing)
			}
		})
	}
}

// A store that is away is not asked for all counters again and again, and neither is one that refuses a single counter.
func TestAServerThatCannotLookDoesNotFloodTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &distant{Store: memstore.New(nil)}
		text, names := "namespaces:\n", []string{}
		for i := range 200 {
			names = append(names, fmt.Sprint("n", i))
			text += "  " + names[i] + ": {kind: segment}\n"
		}
		s := opened(t, d, text)
		made := map[string]bool{}
		issued(t, s, made, 1, names...)
		time.Sleep(time.Minute + time.Second)
		d.Restore(nil)
		issued(t, s, made, 2000, "n5") // which notices
		d.away.Store(true)
		d.reads.Store(0)
		time.Sleep(time.Hour)
		if n := d.reads.Load(); n > 1200*16+16 {
			t.Errorf("%d reads in an hour of a store that is away", n)
		}
		d.away.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if missing := d.lacks(names...); missing != nil {
			t.Errorf("the store lacks %q", missing)
		}
		d.refused.Store("firn/counter:n3")
		d.Restore(nil)
		time.Sleep(10 * time.Second)
		d.reads.Store(0)
		time.Sleep(time.Hour)
		if missing := d.lacks(names...); fmt.Sprint(missing) != "[n3]" {
			t.Errorf("the store lacks %q", missing)
		}
		if n := d.reads.Load(); n > 1200*16+70*220 {
			t.Errorf("%d reads in an hour in which one counter cannot be written", n)
		}
		d.refused.Store("")
	})
}
