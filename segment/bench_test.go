package segment_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/memstore"
)

// benchName returns a name whose range outlasts any benchmark.
func benchName(b *testing.B) *segment.Namespace {
	b.Helper()
	s, err := segment.New(segment.Config{Store: memstore.New(nil), MinStep: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	n, err := s.Namespace("orders")
	if err == nil {
		_, err = n.Next(b.Context())
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

// BenchmarkNext measures an id beside the least that it could cost, an atomic
// addition. Under "ratio" both take turns, so that what else the machine does
// meets both: x is the median of the quotients, beside the medians of both.
func BenchmarkNext(b *testing.B) {
	word, n := new(hot), benchName(b)
	add := func(times int) {
		for range times {
			word.n.Add(1)
		}
	}
	next := func(times int) {
		for range times {
			if _, err := n.Next(b.Context()); err != nil {
				b.Error(err)
			}
		}
	}
	for _, goroutines := range []string{"1 goroutine", "2 goroutines"} {
		// run spreads the calls over the goroutines and returns how long they took.
		run := func(call func(times int), times int) time.Duration {
			if goroutines == "1 goroutine" {
				started := time.Now()
				call(times)
				return time.Since(started)
			}
			var group sync.WaitGroup
			started := time.Now()
			for range 2 {
				group.Go(func() { call(times / 2) })
			}
			group.Wait()
			return time.Since(started)
		}
		b.Run(goroutines+"/add", func(b *testing.B) { run(add, b.N) })
		b.Run(goroutines+"/next", func(b *testing.B) {
			b.ReportAllocs()
			run(next, b.N)
		})
		b.Run(goroutines+"/ratio", func(b *testing.B) {
			const slice = 1_000_000
			var adds, nexts, quotients []float64
			for done := 0; done < b.N; done += slice {
				nexts = append(nexts, float64(run(next, slice))/slice)
				adds = append(adds, float64(run(add, slice))/slice)
				quotients = append(quotients, nexts[len(nexts)-1]/adds[len(adds)-1])
			}
			for unit, values := range map[string][]float64{"x": quotients, "ns/add": adds, "ns/next": nexts} {
				slices.Sort(values)
				b.ReportMetric(values[len(values)/2], unit)
			}
			b.ReportMetric(0, "ns/op") // of both together: says nothing
		})
	}
}

func BenchmarkNextByName(b *testing.B) {
	s, err := segment.New(segment.Config{Store: memstore.New(nil), MinStep: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Next(ctx, "orders"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFill1024(b *testing.B) {
	n := benchName(b)
	ids := make([]firn.ID, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.Fill(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/id")
}

// BenchmarkNames reports what a name costs in memory: idle, and with a range in
// use and another ahead.
func BenchmarkNames(b *testing.B) {
	for name, use := range map[string]bool{"idle": false, "used": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(hundredThousand(b, use), "B/name")
			}
		})
	}
}
