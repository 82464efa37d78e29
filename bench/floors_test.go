package bench

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var sink int64

func BenchmarkFloor(b *testing.B) {
	b.Run("time.Since", func(b *testing.B) {
		start := time.Now()
		for b.Loop() {
			sink = int64(time.Since(start))
		}
	})
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			sink = time.Now().UnixMilli()
		}
	})
	b.Run("atomic-add", func(b *testing.B) {
		var n atomic.Int64
		for b.Loop() {
			n.Add(1)
		}
	})
	b.Run("atomic-add-2", func(b *testing.B) {
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
	b.Run("compare-and-swap", func(b *testing.B) {
		var n atomic.Int64
		for b.Loop() {
			for old := n.Load(); !n.CompareAndSwap(old, old+1); old = n.Load() {
			}
		}
	})
	b.Run("compare-and-swap-2", func(b *testing.B) {
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				for old := n.Load(); !n.CompareAndSwap(old, old+1); old = n.Load() {
				}
			}
		})
	})
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			sink++
			mu.Unlock()
		}
	})
	b.Run("mutex-2", func(b *testing.B) {
		var mu sync.Mutex
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				mu.Lock()
				sink++
				mu.Unlock()
			}
		})
	})
}
