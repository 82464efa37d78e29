package prefixed_test

import (
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefixed"
)

// The compiler cannot remove calls whose results are stored here.
var (
	benchText  string
	benchBytes []byte
	benchID    firn.ID
)

func BenchmarkID(b *testing.B) {
	p := mustNew(b, "ord")
	b.ReportAllocs()
	for b.Loop() {
		benchText = p.ID(classicID)
	}
}

func BenchmarkParseID(b *testing.B) {
	p := mustNew(b, "ord")
	text := p.ID(classicID)
	b.ReportAllocs()
	for b.Loop() {
		id, err := p.ParseID(text)
		if err != nil {
			b.Fatal(err)
		}
		benchID = id
	}
}

func BenchmarkParseBytes16(b *testing.B) {
	p := mustNew(b, "usr")
	text := p.Bytes(make([]byte, 16))
	b.ReportAllocs()
	for b.Loop() {
		id, err := p.ParseBytes(text, 16)
		if err != nil {
			b.Fatal(err)
		}
		benchBytes = id
	}
}

func BenchmarkTypedAppendText(b *testing.B) {
	benchBytes = make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		benchBytes, _ = prefixed.ID[order](classicID).AppendText(benchBytes[:0])
	}
}
