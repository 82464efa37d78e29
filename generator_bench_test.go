package firn_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// wide returns a generator whose sequence is never used up, to measure the call itself.
func wide(b *testing.B) *firn.Generator {
	b.Helper()
	layout, err := firn.ParseLayout("41/0/0/22")
	if err != nil {
		b.Fatal(err)
	}
	g, err := firn.New(0, firn.Config{Layout: layout})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := g.Next(b.Context()); err != nil {
		b.Fatal(err)
	}
	return g
}

func BenchmarkFloor(b *testing.B) {
	b.Run("time.Since", func(b *testing.B) {
		t := time.Now()
		for b.Loop() {
			_ = time.Since(t)
		}
	})
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now()
		}
	})
	b.Run("atomic add", func(b *testing.B) {
		var n atomic.Uint64
		for b.Loop() {
			n.Add(1)
		}
	})
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		n := 0
		for b.Loop() {
			mu.Lock()
			n++
			mu.Unlock()
		}
	})
}

func BenchmarkNextWide(b *testing.B) {
	g := wide(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNextWideParallel(b *testing.B) {
	g := wide(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(b.Context()); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkFill1024(b *testing.B) {
	g := wide(b)
	ids := make([]firn.ID, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Fill(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/id")
}

func BenchmarkNextDefaultLayout(b *testing.B) {
	g, err := firn.New(0, firn.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	perMilli := float64(b.N) / (float64(b.Elapsed()) / float64(time.Millisecond))
	b.ReportMetric(perMilli/4096*100, "%ofcap")
}

func BenchmarkNextWall(b *testing.B) {
	layout, err := firn.ParseLayout("41/0/0/22")
	if err != nil {
		b.Fatal(err)
	}
	g, err := firn.New(0, firn.Config{Layout: layout, Clock: firn.ClockWall})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
