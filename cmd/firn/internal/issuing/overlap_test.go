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
		overlaps := func() float64 {
			t.Helper()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "firn_lease_overlaps_total" && len(f.GetMetric()) == 1 {
					return f.GetMetric()[0].GetCounter().GetValue()
				}
			}
			t.Fatal("there is no firn_lease_overlaps_total")
			return 0
		}
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

func mustLayout(t *testing.T, text string) firn.Layout {
	t.Helper()
	l, err := firn.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
