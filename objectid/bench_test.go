package objectid_test

import (
	"context"
	"testing"

	"github.com/firn-id/firn/objectid"
)

// The compiler cannot remove calls whose results are stored here.
var (
	benchID    objectid.ID
	benchText  string
	benchBytes []byte
)

// If Next takes less than 60 ns, it reaches the limit of the counter, 16,777,216 ids a second,
// and waits.
func BenchmarkNext(b *testing.B) {
	g := mustNew(b, objectid.Config{})
	b.ReportAllocs()
	for b.Loop() {
		id, err := g.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		benchID = id
	}
}

func BenchmarkNextParallel(b *testing.B) {
	g := mustNew(b, objectid.Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(b.Context()); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkNextUncapped measures the call itself: it takes a new generator before the counter is
// used up.
func BenchmarkNextUncapped(b *testing.B) {
	g := mustNew(b, objectid.Config{})
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		if i&(1<<23-1) == 0 {
			g = mustNew(b, objectid.Config{})
		}
		id, err := g.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		benchID = id
	}
}

func BenchmarkFill1024(b *testing.B) {
	ids := make([]objectid.ID, 1024)
	g := mustNew(b, objectid.Config{})
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		if i&(1<<13-1) == 0 {
			g = mustNew(b, objectid.Config{})
		}
		if _, err := g.Fill(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/id")
}

func BenchmarkString(b *testing.B) {
	id := mustParse(b, known)
	b.ReportAllocs()
	for b.Loop() {
		benchText = id.String()
	}
}

func BenchmarkAppendText(b *testing.B) {
	id := mustParse(b, known)
	b.ReportAllocs()
	for b.Loop() {
		benchBytes, _ = id.AppendText(benchBytes[:0])
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		id, err := objectid.Parse(known)
		if err != nil {
			b.Fatal(err)
		}
		benchID = id
	}
}

func BenchmarkMarshalJSON(b *testing.B) {
	id := mustParse(b, known)
	b.ReportAllocs()
	for b.Loop() {
		benchBytes, _ = id.MarshalJSON()
	}
}

func BenchmarkUnmarshalJSON(b *testing.B) {
	text := []byte(`"` + known + `"`)
	b.ReportAllocs()
	for b.Loop() {
		if err := benchID.UnmarshalJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}
