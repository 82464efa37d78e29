package redisstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

// BenchmarkWrite times a confirmed write with some replicas. For comparison it times a minimal script
// that adds, and the same with WAIT in another round trip.
func BenchmarkWrite(b *testing.B) {
	ctx := context.Background()
	for n := range 3 {
		p, _ := withReplicas(b, n)
		s, c := open(b, "redis://"+p.Addr()), raw(b, p.Addr())
		script := redis.NewScript(`redis.call('ZADD', KEYS[1], 0, ARGV[1]) redis.call('ZREM', KEYS[1], ARGV[2]) return 1`)
		b.Run(fmt.Sprintf("replicas=%d/confirmed", n), func(b *testing.B) {
			var last store.Entry
			for i := 0; b.Loop(); i++ {
				e, err := s.CompareAndSwap(ctx, b.Name(), last.Revision, []byte("value"))
				if i == 0 && err != nil {
					e, err = s.Get(ctx, b.Name()) // of an earlier run
				}
				if last = e; err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("replicas=%d/plain", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := script.Run(ctx, c, []string{"plain"}, i, i-1).Err(); err != nil {
					b.Fatal(err)
				}
				if n > 0 {
					conn := c.Conn()
					if err := conn.Do(ctx, "wait", n, 1000).Err(); err != nil {
						b.Fatal(err)
					}
					_ = conn.Close()
				}
			}
		})
	}
}
