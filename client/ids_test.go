package client

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// FuzzAnswer reads any bytes as an answer. Ids that are accepted must be those in the answer, but
// for leading zeros.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("1\n2\n3\n"), 3)
	f.Add([]byte("9223372036854775807\n"), 1)
	f.Add([]byte("9223372036854775808\n"), 1)
	f.Add([]byte("ord_06XWHAVS06C5J\n\n"), 2)
	f.Add([]byte("12\r\n"), 1)
	f.Fuzz(func(t *testing.T, body []byte, count int) {
		count = min(max(count, 1), 100)
		ids := make([]firn.ID, count)
		if err := numbers.fill(ids, body); err == nil {
			lines := bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
			if len(lines) != count || body[len(body)-1] != '\n' {
				t.Fatalf("%d ids of %q", count, body)
			}
			for i, line := range lines {
				want, err := firn.ParseID(string(line))
				if err != nil || ids[i] != want {
					t.Errorf("%d of %q: %v", ids[i], line, err)
				}
			}
		}
		words := make([]string, count)
		if err := texts.fill(words, body); err == nil {
			var again []byte
			for _, word := range words {
				again = append(append(again, word...), '\n')
			}
			if !bytes.Equal(again, body) {
				t.Errorf("%q of %q", words, body)
			}
		}
	})
}

func TestRetryAfterIsSecondsOrADateAndBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "1": time.Second, "3600": time.Minute, "-1": 0, "x": 0, "99999999999999999999": 0,
		"Sat, 21 Nov 2026 12:00:10 GMT": 10 * time.Second, "Sat, 21 Nov 2026 11:00:00 GMT": 0, "Sun, 22 Nov 2026 11:00:00 GMT": time.Minute,
	} {
		h := http.Header{"Retry-After": {text}, "Date": {"Sat, 21 Nov 2026 12:00:00 GMT"}}
		if got := parseRetryAfter(h); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
