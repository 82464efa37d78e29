package firn_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// seeds are texts at the limits of what encodings read.
var seeds = []string{
	"", "0", "1", "-", "-5", "0x", "0x1f", "0XFFFFFFFFFFFFFFFF", "1414362783486840832", "9223372036854775807",
	"9223372036854775808", "18446744073709551616", "7ZZZZZZZZZZZZ", "16J", "il0O", "1y2p0ij32e8e7", "NQm6rKPiEPF",
	"AzL8n0Y58m7", "6zzzzzzzzzz", "f_________8", "AAAAAAAAAAB", "a-b_c", "é", "\xff\xff", "1\x00",
	strings.Repeat("1", 63), strings.Repeat("1", 64),
}

// wantParse reads text digit by digit, the simple way.
func wantParse(e firn.Encoding, text string) (firn.ID, bool) {
	switch e {
	case firn.Hex:
		if len(text) > 2 && strings.EqualFold(text[:2], "0x") {
			text = text[2:]
		}
		text = strings.Map(lowerASCII, text)
	case firn.Base36:
		text = strings.Map(lowerASCII, text)
	case firn.Base32:
		text = strings.Map(func(r rune) rune {
			switch {
			case strings.ContainsRune("iIlL", r):
				return '1'
			case strings.ContainsRune("oO", r):
				return '0'
			case 'a' <= r && r <= 'z':
				return r - 'a' + 'A'
			}
			return r
		}, text)
	}
	if text == "" || len(text) > widths[e] || e == firn.Base64URL && len(text) != 11 {
		return 0, false
	}
	n, radix := new(big.Int), big.NewInt(int64(len(alphabets[e])))
	for i := range len(text) {
		digit := strings.IndexByte(alphabets[e], text[i])
		if digit < 0 {
			return 0, false
		}
		n.Add(n.Mul(n, radix), big.NewInt(int64(digit)))
	}
	if e == firn.Base64URL { // 66 bits; the last two must be 0
		if n.Bit(0) != 0 || n.Bit(1) != 0 {
			return 0, false
		}
		n.Rsh(n, 2)
	}
	return firn.ID(n.Int64()), n.BitLen() <= 63
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r - 'A' + 'a'
	}
	return r
}

func FuzzEncodingParse(f *testing.F) {
	for _, text := range seeds {
		for _, e := range everyEncoding {
			f.Add(uint8(e), text)
		}
	}
	f.Fuzz(func(t *testing.T, encoding uint8, text string) {
		e := firn.Encoding(encoding % uint8(len(alphabets)))
		want, ok := wantParse(e, text)
		id, err := e.Parse(text)
		if ok != (err == nil) || ok && id != want || !ok && id != 0 {
			t.Fatalf("%v.Parse(%q) = %d, %v, want %d, %v", e, text, id, err, want, ok)
		}
		if err != nil && (!errors.Is(err, firn.ErrSyntax) || len(err.Error()) > 1000) {
			t.Fatalf("the error is %v", err)
		}
	})
}

func FuzzEncodingRoundTrip(f *testing.F) {
	for _, id := range []int64{0, 1, -1, -5, 57, 58, 59, 1414362783486840832, 1<<63 - 1, -1 << 63} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		for _, e := range everyEncoding {
			fixed, compact := e.Fixed(firn.ID(n)), e.Compact(firn.ID(n))
			for _, text := range []string{fixed, compact} {
				id, err := e.Parse(text)
				if n < 0 && err == nil || n >= 0 && (id != firn.ID(n) || err != nil) {
					t.Fatalf("%v writes %d as %q and reads %d, %v", e, n, text, id, err)
				}
			}
			if n >= 0 && len(fixed) != widths[e] {
				t.Fatalf("%v writes %d as %q, %d characters, want %d", e, n, fixed, len(fixed), widths[e])
			}
		}
	})
}

func FuzzParseEncoding(f *testing.F) {
	for _, name := range []string{"", "decimal", "base58", "Base58", "base64url", "base2", "Encoding(9)"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		e, err := firn.ParseEncoding(name)
		if err == nil && e.String() != name || err != nil && !errors.Is(err, firn.ErrSyntax) {
			t.Fatalf("ParseEncoding(%q) = %v, %v", name, e, err)
		}
	})
}

func FuzzIDUnmarshalJSON(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
		f.Add([]byte(`"` + text + `"`))
	}
	for _, text := range []string{`null`, `true`, `1.5`, `1e3`, `-0`, `[1]`, `{"a":"\\"}`, `"\u0031"`, `"`, `"\`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		id := firn.ID(42)
		err := json.Unmarshal(text, &id)
		var any any
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber()
		if !json.Valid(text) || numbers.Decode(&any) != nil {
			if err == nil || id != 42 {
				t.Fatalf("json.Unmarshal(%q) = %d, %v, though it is no JSON", text, id, err)
			}
			return
		}
		want, ok := firn.ID(42), false
		switch v := any.(type) {
		case nil:
			ok = true
		case string:
			want, ok = wantParse(firn.Decimal, v)
		case json.Number:
			want, ok = wantParse(firn.Decimal, v.String())
		}
		if !ok {
			want = 42
		}
		if ok != (err == nil) || id != want || err != nil && !errors.Is(err, firn.ErrSyntax) {
			t.Fatalf("json.Unmarshal(%q) = %d, %v, want %d, %v", text, id, err, want, ok)
		}
		id = 42 // a direct call neither panics nor changes the id on an error
		if err := id.UnmarshalJSON(text); err != nil && id != 42 {
			t.Fatalf("UnmarshalJSON(%q) = %v and left %d", text, err, id)
		}
	})
}

func FuzzIDScan(f *testing.F) {
	for i, text := range seeds {
		f.Add(uint8(i), int64(i-5)<<40, text)
	}
	f.Fuzz(func(t *testing.T, kind uint8, n int64, text string) {
		want, ok := wantParse(firn.Decimal, text)
		var src any
		switch kind % 6 {
		case 0:
			src, want, ok = n, firn.ID(n), n >= 0
		case 1:
			src = text
		case 2:
			src = []byte(text)
		case 3:
			src, ok = nil, false
		case 4:
			src, ok = float64(n), false
		case 5:
			src, want, ok = uint64(n), firn.ID(n), n >= 0
		}
		id := firn.ID(42)
		if !ok {
			want = id
		}
		err := id.Scan(src)
		if id != want || ok != (err == nil) || err != nil && !errors.Is(err, firn.ErrSyntax) && !errors.Is(err, firn.ErrRange) {
			t.Fatalf("Scan(%T %[1]v) = %d, %v, want %d", src, id, err, want)
		}
	})
}

func FuzzIDUnmarshalText(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, ok := wantParse(firn.Decimal, string(text))
		id := firn.ID(42)
		if !ok {
			want = id
		}
		if err := id.UnmarshalText(text); id != want || ok != (err == nil) {
			t.Fatalf("UnmarshalText(%q) = %d, %v, want %d", text, id, err, want)
		}
	})
}

func FuzzIDUnmarshalBinary(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{0x80, 7: 0})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(make([]byte, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		id := firn.ID(42)
		err := id.UnmarshalBinary(b)
		if ok := len(b) == 8 && b[0] < 0x80; ok != (err == nil) {
			t.Fatalf("UnmarshalBinary(%x) = %v", b, err)
		}
		if err == nil && !bytes.Equal(binary.BigEndian.AppendUint64(nil, uint64(id)), b) || err != nil && id != 42 {
			t.Fatalf("UnmarshalBinary(%x) = %d, %v", b, id, err)
		}
	})
}
