package leases

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// counted counts the calls of a store.
type counted struct {
	store.Store
	reads, writes, conflicts atomic.Int64
	clock                    atomic.Int64 // readings, which accompany a listing or a renewal
}

func (c *counted) Get(ctx context.Context, key string) (store.Entry, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counted) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	c.reads.Add(1)
	return c.Store.List(ctx, prefix)
}

func (c *counted) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	c.writes.Add(1)
	r, err := c.Store.CompareAndSwap(ctx, key, old, value)
	if errors.Is(err, store.ErrConflict) {
		c.conflicts.Add(1)
	}
	return r, err
}

func (c *counted) Traits() store.Traits {
	if c.Store.Traits().Clock == nil {
		return store.Traits{}
	}
	return store.Traits{Clock: c}
}

func (c *counted) Now(ctx context.Context) (time.Time, error) {
	c.clock.Add(1)
	return c.Store.Traits().Clock.Now(ctx)
}

func count(s store.Store) (store.Store, *counted) {
	c := &counted{Store: s}
	return c, c
}

func joining(t testing.TB, s store.Store, pool string) lease.Source {
	t.Helper()
	slots, err := lease.NewSource(lease.Config{Store: s, Pool: pool, Look: time.Second, Generator: firn.Config{Layout: firn.DefaultLayout()}})
	check(t, err)
	return slots
}

func ask(t testing.TB) func() lease.Ask {
	return func() lease.Ask {
		t.Helper()
		now, err := firn.DefaultLayout().Tick(time.Now())
		check(t, err)
		return lease.Ask{Now: now, From: now, Window: 3_600_000}
	}
}

// TestAHolderMakesFewStoreCalls counts the store calls of Look and Renew.
func TestAHolderMakesFewStoreCalls(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := m.make(t)
			ctx := context.Background()
			s, c := count(b.open(t))
			slots := joining(t, s, "default")
			held, err := slots.Acquire(ctx, ask(t))
			check(t, err)
			reads, writes := c.reads.Load(), c.writes.Load()
			for range 10 {
				check(t, slots.Look(ctx, held))
			}
			if c.reads.Load() != reads+10 || c.writes.Load() != writes {
				t.Errorf("10 looks: %d reads, %d writes", c.reads.Load()-reads, c.writes.Load()-writes)
			}
			reads, clock := c.reads.Load(), c.clock.Load()
			next := ask(t)()
			next.From += 1000
			_, err = slots.Renew(ctx, held, next)
			check(t, err)
			if c.reads.Load() != reads+1 || c.writes.Load() != writes+1 || c.clock.Load() > clock+1 {
				t.Errorf("a renewal: %d reads, %d writes", c.reads.Load()-reads, c.writes.Load()-writes)
			}
		})
	}
}
