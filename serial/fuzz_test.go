package serial_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/serial"
)

// fuzzed returns formats that differ in every setting.
func fuzzed(t testing.TB) []*serial.Format {
	t.Helper()
	return []*serial.Format{
		mustNew(t, serial.Config{}),
		mustNew(t, serial.Config{Layout: mustLayout(t, "classic"), Check: serial.Luhn, Zone: eight}),
		mustNew(t, serial.Config{Layout: mustLayout(t, "sonyflake"), Check: serial.Mod97, Prefix: "PAY"}),
		mustNew(t, serial.Config{Layout: mustLayout(t, "uid-generator"), Width: 64}),
		mustNew(t, serial.Config{Layout: mustLayout(t, "52/0/4/7,unit=7us,epoch=1985-01-01"), Prefix: "7", Width: 40, Zone: time.FixedZone("+05:45", 20700)}),
		mustNew(t, serial.Config{Layout: mustLayout(t, "60/0/0/3,unit=1h"), Zone: time.FixedZone("", -12345)}),
	}
}

func FuzzParse(f *testing.F) {
	formats := fuzzed(f)
	for i, format := range formats {
		for _, id := range []firn.ID{0, 1, 1 << 30, 1 << 50} {
			text, err := format.Text(id)
			if err != nil { // after the year 9999
				continue
			}
			f.Add(uint8(i), text)
			f.Add(uint8(i), text[1:])
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		format := formats[int(which)%len(formats)]
		id, err := format.Parse(text)
		if err != nil {
			known := errors.Is(err, firn.ErrSyntax) || errors.Is(err, firn.ErrRange) || errors.Is(err, firn.ErrTimeExhausted)
			if id != 0 || !known || len(err.Error()) > 1000 {
				t.Fatalf("%s: Parse(%q) = %d, %v", format, text, id, err)
			}
			return
		}
		if again, err := format.Text(id); again != text || err != nil {
			t.Fatalf("%s: %s is read as %d and written %s, %v", format, text, id, again, err)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	formats := fuzzed(f)
	for i := range formats {
		f.Add(uint8(i), int64(1)<<40, int64(1)<<40+1)
	}
	f.Fuzz(func(t *testing.T, which uint8, a, b int64) {
		format := formats[int(which)%len(formats)]
		texts := [2]string{}
		for i, n := range []int64{a, b} {
			id := firn.ID(n)
			text, err := format.Text(id)
			if err != nil {
				if !errors.Is(err, firn.ErrRange) || text != "" {
					t.Fatalf("%s: Text(%d) = %q, %v", format, id, text, err)
				}
				return
			}
			if got, err := format.Parse(text); got != id || err != nil {
				t.Fatalf("%s: %d is written %s and read %d, %v", format, id, text, got, err)
			}
			texts[i] = text
		}
		if (a < b) != (texts[0] < texts[1]) {
			t.Fatalf("%s: %d is %s, %d is %s", format, a, texts[0], b, texts[1])
		}
	})
}
