package decode

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// FuzzText reads what people paste: whatever is accepted is an id of the layout,
// which reads back from its decimal form as the same.
func FuzzText(f *testing.F) {
	for _, text := range []string{"249807960190540619", "-1", "0x1F", "20261120-221503.123-w17-s42", "zzzzzzzzzzzzz", "", " 1", "9223372036854775808"} {
		f.Add(text, "")
		f.Add(text, "base62")
	}
	layout := firn.DefaultLayout()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text, encoding string) {
		r, err := Text(text, encoding, layout, now)
		if err != nil {
			if !errors.Is(err, firn.ErrSyntax) && !errors.Is(err, firn.ErrRange) {
				t.Fatalf("%q: %v matches neither of the two kinds of mistakes", text, err)
			}
			return
		}
		again, err := Text(r.ID.String(), "decimal", layout, now)
		if err != nil || again.ID != r.ID || again.Tick != r.Tick || again.Worker != r.Worker || again.Sequence != r.Sequence {
			t.Fatalf("%q was read as %+v, and its decimal form as %+v, %v", text, r, again, err)
		}
	})
}
