package firn_test

import (
	"testing"

	"github.com/firn-id/firn"
)

// benchIDs are ids with the full number of digits.
var benchIDs = func() (ids [256]firn.ID) {
	x := uint64(88172645463325252) // xorshift, the same in every run
	for i := range ids {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		ids[i] = firn.ID(x>>1) | 1<<61
	}
	return ids
}()

// The compiler cannot remove calls whose results are stored here.
var (
	benchText  string
	benchBytes []byte
	benchID    firn.ID
)

func BenchmarkEncodingCompact(b *testing.B) {
	for _, e := range everyEncoding {
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				benchText = e.Compact(benchIDs[i&255])
			}
		})
	}
}

func BenchmarkEncodingAppendFixed(b *testing.B) {
	for _, e := range everyEncoding {
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			benchBytes = make([]byte, 0, 64)
			for i := 0; b.Loop(); i++ {
				benchBytes = e.AppendFixed(benchBytes[:0], benchIDs[i&255])
			}
		})
	}
}

func BenchmarkEncodingParse(b *testing.B) {
	for _, e := range everyEncoding {
		b.Run(e.String(), func(b *testing.B) {
			var texts [256]string
			for i, id := range benchIDs {
				texts[i] = e.Compact(id)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				id, err := e.Parse(texts[i&255])
				if err != nil {
					b.Fatal(err)
				}
				benchID = id
			}
		})
	}
}

func BenchmarkIDString(b *testing.B) {
	for name, mask := range map[string]firn.ID{"long": firn.MaxID, "five digits": 1<<16 - 1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				benchText = (benchIDs[i&255] & mask).String()
			}
		})
	}
}

func BenchmarkIDMarshalJSON(b *testing.B) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		text, err := benchIDs[i&255].MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		benchBytes = text
	}
}

func BenchmarkIDUnmarshalJSON(b *testing.B) {
	var texts [256][]byte
	for i, id := range benchIDs {
		texts[i] = []byte(`"` + id.String() + `"`)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := benchID.UnmarshalJSON(texts[i&255]); err != nil {
			b.Fatal(err)
		}
	}
}
