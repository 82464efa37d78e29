package issuing_test

import (
	"context"
	"fmt"
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
}

func (*distant) Traits() store.Traits { return store.Traits{} }

func (d *distant) Get(ctx context.Context, key string) (store.Entry, error) {
	if d.reads.Add(1); d.away.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	return d.Store.Get(ctx, key)
}

func (d *distant) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	d.writes.Add(1)
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

// Nobody asks a running server for ids after its store was wiped or set back, or it has enough in memory. One that starts
// a few seconds later makes no id that it made.
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

// It costs a read every few seconds, and no write, however many counters there are.
func TestAServerThatLooksAtItsCountersWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &distant{Store: memstore.New(nil)}
		s := opened(t, d, fourCounters)
		issued(t, s, map[string]bool{}, 5, counterNames...)
		time.Sleep(time.Minute + time.Second) // between two looks
		d.reads.Store(0)
		d.writes.Store(0)
		time.Sleep(time.Minute)
		if d.writes.Load() != 0 || d.reads.Load() != 20 {
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
		if n := d.reads.Load(); n < 20 || n > 20*5 { // it may try this one, and then all
			t.Errorf("%d reads in a minute", n)
		}
		for _, name := range []string{"orders", "halves", "bills"} {
			if e, err := d.Store.Get(t.Context(), "firn/counter:"+name); err != nil || !strings.Contains(string(e.Value), "{") {
				t.Errorf("%s: %s, %v", name, e.Value, err)
			}
		}
	})
}
