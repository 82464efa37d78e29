package leases

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
)

// BenchmarkLease times the operations of a lease with each store.
func BenchmarkLease(b *testing.B) {
	for _, m := range makers {
		b.Run(m.name, func(b *testing.B) {
			backend := m.make(b)
			ctx := context.Background()
			s, err := storeurl.Open(ctx, backend.url)
			check(b, err)
			defer s.Close()
			slots := joining(b, s, "default")
			b.Run("acquire and release", func(b *testing.B) {
				for b.Loop() {
					grant, err := slots.Acquire(ctx, ask(b))
					check(b, err)
					check(b, slots.Release(ctx, grant, grant.After))
				}
			})
			held, err := slots.Acquire(ctx, ask(b))
			check(b, err)
			b.Run("renew", func(b *testing.B) {
				for b.Loop() {
					next := ask(b)()
					held, err = slots.Renew(ctx, held, next)
					check(b, err)
				}
			})
			b.Run("look", func(b *testing.B) {
				for b.Loop() {
					check(b, slots.Look(ctx, held))
				}
			})
		})
	}
}

// BenchmarkWrite times a confirmed write of one register with each store. Prefer the median to the
// mean on a shared machine.
func BenchmarkWrite(b *testing.B) {
	for _, m := range makers {
		b.Run(m.name, func(b *testing.B) {
			ctx := context.Background()
			s, err := storeurl.Open(ctx, m.make(b).url)
			check(b, err)
			defer s.Close()
			written, err := s.CompareAndSwap(ctx, "bench", 0, []byte("value"))
			check(b, err)
			b.Run("confirmed", func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					begun := time.Now()
					written, err = s.CompareAndSwap(ctx, "bench", written.Revision, []byte("value"))
					check(b, err)
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs/op")
			})
		})
	}
}

// BenchmarkNextWhileTheStoreIs times Next while the store is up and while it is down: issuing an id
// does not use the store.
func BenchmarkNextWhileTheStoreIs(b *testing.B) {
	backend := onRedis(b)
	ctx := context.Background()
	s, err := storeurl.Open(ctx, backend.url)
	check(b, err)
	defer s.Close()
	// A layout below its rate limit, so that calls do not wait for ticks.
	wide, err := firn.ParseLayout("41/0/0/22")
	check(b, err)
	l, err := lease.Open(ctx, lease.Config{
		Store: s, Look: 25 * time.Millisecond, Generator: firn.Config{Layout: wide},
	})
	check(b, err)
	next := func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("up", next)
	backend.kill()
	b.Run("down", next)
	backend.restart()
	b.Run("up again", next)
	check(b, l.Close(ctx))
}
