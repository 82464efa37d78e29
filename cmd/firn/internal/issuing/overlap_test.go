package issuing_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A forgetful store is another, empty one from some moment on.
type forgetful struct {
	store.Store
	now atomic.Pointer[memstore.Store]
}

func (f *forgetful) Get(ctx context.Context, key string) (store.Entry, error) {
	return f.now.Load().Get(ctx, key)
}

func (f *forgetful) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	return f.now.Load().CompareAndSwap(ctx, key, old, value)
}

func (f *forgetful) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return f.now.Load().List(ctx, prefix)
}

func TestAnOverlapIsCounted(t *testing.T) {
	in2030(t, func(t *testing.T) {
		first := memstore.New(nil)
		st := &forgetful{Store: first}
		st.now.Store(first)
		registry := prometheus.NewRegistry()
		s := opened(t, st, "namespaces: {orders: {window: 1m, layout: 41/0/0/12}}", func(cfg *issuing.Config) { cfg.Registry = registry })
		overlaps := func() float64 { return measured(t, registry, "firn_lease_overlaps_total")["default"] }
		ready(t, s, "orders")
		if n := overlaps(); n != 0 {
			t.Errorf("%v overlaps of a store that forgot nothing", n)
		}
		wiped := memstore.New(nil)
		other, err := lease.Open(t.Context(), lease.Config{
			Store: wiped, Window: time.Minute, Generator: firn.Config{Layout: mustLayout(t, "41/0/0/12")},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(context.Background())
		st.now.Store(wiped)
		time.Sleep(time.Minute)
		if n := overlaps(); n != 1 {
			t.Errorf("%v overlaps, want 1", n)
		}
	})
}

// measured returns a metric by the values of its labels.
func measured(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label += l.GetValue()
			}
			by[label] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if len(by) == 0 {
		t.Errorf("there is no %s", name)
	}
	return by
}

func TestAStoreThatHasLessThanItConfirmedIsCounted(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := memstore.New(nil)
		registry := prometheus.NewRegistry()
		s := opened(t, st, `namespaces:
  orders: {}
  users: {kind: segment, min_step: 10, max_step: 10}
  txn: {kind: sequence}
  bills: {kind: number, template: 'B{n:6}'}
`, func(cfg *issuing.Config) { cfg.Registry = registry })
		f := s.Front(issuing.HTTP)
		caller := local(t, f)
		issue := func() {
			var b issuing.Batch
			for _, name := range []string{"orders", "users", "txn", "bills"} {
				if err := take(t, f, caller, name, 25, &b); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				b.Release()
			}
			time.Sleep(4 * time.Second) // longer than a look
		}
		issue()
		for label, n := range measured(t, registry, "firn_store_setbacks_total") {
			if n != 0 {
				t.Errorf("%s: %v before the store was wiped", label, n)
			}
		}
		st.Restore(nil)
		issue()
		counted := measured(t, registry, "firn_store_setbacks_total")
		for _, label := range []string{"default", "users", "txn", "bills"} {
			if counted[label] != 1 {
				t.Errorf("%s: %v, want 1", label, counted[label])
			}
		}
	})
}

func mustLayout(t *testing.T, text string) firn.Layout {
	t.Helper()
	l, err := firn.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
