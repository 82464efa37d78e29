package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestReadingsPutTheLikeliestFirst(t *testing.T) {
	const (
		dec, hex, b32, b36, b58 = firn.Decimal, firn.Hex, firn.Base32, firn.Base36, firn.Base58
		b62, b64, b64url, b2    = firn.Base62, firn.Base64, firn.Base64URL, firn.Base2
	)
	for _, c := range []struct {
		claim string
		text  string
		want  []firn.Encoding
	}{
		{"nothing reads no text", "", nil},
		{"nothing reads a space", "12 34", nil},
		{"nothing reads text that is too long", strings.Repeat("1", 64), nil},
		{"base2 may be long", strings.Repeat("1", 63), []firn.Encoding{b2}},
		{"digits are decimal first; to base58 a 1 in front is a zero, so it is last",
			"1234", []firn.Encoding{dec, hex, b32, b36, b62, b64, b58}},
		{"digits are decimal before encodings of just that width",
			"12345678901", []firn.Encoding{dec, b62, b64, hex, b32, b36}},
		{"nineteen digits are decimal only", "1414362783486840832", []firn.Encoding{dec}},
		{"0x is hex only", "0x13a0c5e2b0401000", []firn.Encoding{hex}},
		{"0X is hex only", "0X1F", []firn.Encoding{hex}},
		{"0x followed by other letters is not hex", "0xyz", []firn.Encoding{b64, b32, b36, b62}},
		{"sixteen hex digits are hex", "13a0c5e2b0401000", []firn.Encoding{hex}},
		{"a hyphen is base64", "a-b", []firn.Encoding{b64}},
		{"an underscore is base64", "a_b", []firn.Encoding{b64}},
		{"a hyphen at full width is base64 if the first character allows 63 bits", "0-_Abcdefg8", []firn.Encoding{b64}},
		{"a hyphen at full width is base64url if the first character allows 63 bits", "B-_Abcdefg8", []firn.Encoding{b64url}},
		{"thirteen lower-case letters are base36 before Crockford", "0a1b2c3d4e5f6", []firn.Encoding{b36, b32, hex}},
		{"Crockford in the wrong case is before hex of another width", "1a2b3c4d5e6f1", []firn.Encoding{b36, b32, hex}},
		{"thirteen upper-case letters are Crockford before base36", "0A1B2C3D4E5F6", []firn.Encoding{b32, b36, hex}},
		{"letters that Crockford misreads rank last", "I6J", []firn.Encoding{b62, b64, b32, b36}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			var got []firn.Encoding
			for _, r := range readings(c.text) {
				got = append(got, r.Encoding)
				if id, err := r.Encoding.Parse(c.text); id != r.ID || err != nil {
					t.Errorf("reading %v, but %v.Parse gives %d, %v", r, r.Encoding, id, err)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("readings(%q) = %v, want %v", c.text, got, c.want)
			}
		})
	}
}

func TestReadingsContainTheEncodingThatWroteTheText(t *testing.T) {
	for _, id := range []firn.ID{0, 1, 1414362783486840832, firn.MaxID} {
		for e := firn.Decimal; e <= firn.Base2; e++ {
			for _, text := range []string{e.Fixed(id), e.Compact(id)} {
				if !slices.Contains(readings(text), Reading{Encoding: e, ID: id}) {
					t.Errorf("%v wrote %d as %q, which reads as %v", e, id, text, readings(text))
				}
			}
		}
	}
}

func FuzzReadings(f *testing.F) {
	for _, text := range []string{"", "0", "-5", "0x1f", "1414362783486840832", "16J", "il0O", "NQm6rKPiEPF", "a-b_c", "\xff", strings.Repeat("1", 64)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := readings(text)
		onlyHex := len(got) == 1 && got[0].Encoding == firn.Hex
		for e := firn.Decimal; e <= firn.Base2; e++ {
			id, err := e.Parse(text)
			has := slices.Contains(got, Reading{Encoding: e, ID: id})
			if err != nil && has || err == nil && !has && !onlyHex {
				t.Fatalf("%q reads as %v, but %v.Parse gives %d, %v", text, got, e, id, err)
			}
		}
		if len(got) > int(firn.Base2)+1 {
			t.Fatalf("%q reads in an encoding twice: %v", text, got)
		}
	})
}

// A small counter's time is the epoch by decimal, and plausible by base62.
func TestPlainDigitsAreDecimal(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{"0", "12345", "9223372036854775807"} {
		r, err := Text(text, "", firn.DefaultLayout(), now)
		if err != nil || r.Encoding != "decimal" || len(r.Others) > 0 {
			t.Errorf("%s: %s, beside %v, %v", text, r.Encoding, r.Others, err)
		}
	}
}
