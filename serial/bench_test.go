package serial_test

import (
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/serial"
)

// The compiler cannot remove calls whose results are stored here.
var (
	benchText string
	benchID   firn.ID
)

const benchBase = firn.ID(1) << 60 // ids with many digits

func BenchmarkText(b *testing.B) {
	f := mustNew(b, serial.Config{})
	b.ReportAllocs()
	for i := firn.ID(0); b.Loop(); i++ {
		text, err := f.Text(benchBase + i*977)
		if err != nil {
			b.Fatal(err)
		}
		benchText = text
	}
}

func BenchmarkParse(b *testing.B) {
	for _, check := range []serial.Check{serial.NoCheck, serial.Luhn, serial.Mod97} {
		b.Run(check.String(), func(b *testing.B) {
			f := mustNew(b, serial.Config{Check: check})
			var texts [256]string
			for i := range texts {
				texts[i] = mustText(b, f, benchBase+firn.ID(i)*977)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				id, err := f.Parse(texts[i&255])
				if err != nil {
					b.Fatal(err)
				}
				benchID = id
			}
		})
	}
}
