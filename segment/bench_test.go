package segment_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/memstore"
)

func benchName(b *testing.B) *segment.Name {
	b.Helper()
	s, err := segment.Open(segment.Config{Store: memstore.New(nil), MinStep: 1 << 32})
	if err != nil {
		b.Fatal(err)
	}
	n, err := s.Name("orders")
	if err == nil {
		_, err = n.Next()
	}
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// hot is a word alone on its cache line.
type hot struct {
	_ [64]byte
	n atomic.Int64
	_ [56]byte
}

// BenchmarkNext measures an id beside the least that one could cost: an atomic
// addition.
func BenchmarkNext(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		word := new(hot)
		for b.Loop() {
			word.n.Add(1)
		}
	})
	b.Run("id", func(b *testing.B) {
		n := benchName(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := n.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare/2", func(b *testing.B) {
		word := new(hot)
		b.SetParallelism(1)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				word.n.Add(1)
			}
		})
	})
	b.Run("id/2", func(b *testing.B) {
		n := benchName(b)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := n.Next(); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

var _ = math.MaxInt
var _ = context.Background
var _ firn.ID
