package firn_test

import (
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// everyEncoding has the encodings in their order, decimal first.
var everyEncoding = slices.Sorted(maps.Keys(alphabets))

// alphabets repeats the package's alphabets, so that a mistake there fails a test.
var alphabets = map[firn.Encoding]string{
	firn.Decimal:   "0123456789",
	firn.Hex:       "0123456789abcdef",
	firn.Base32:    "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
	firn.Base36:    "0123456789abcdefghijklmnopqrstuvwxyz",
	firn.Base58:    "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
	firn.Base62:    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
	firn.Base64:    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz",
	firn.Base64URL: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	firn.Base2:     "01",
}

var widths = map[firn.Encoding]int{
	firn.Decimal: 19, firn.Hex: 16, firn.Base32: 13, firn.Base36: 13, firn.Base58: 11,
	firn.Base62: 11, firn.Base64: 11, firn.Base64URL: 11, firn.Base2: 63,
}

// positional writes n by long division, at least width digits.
func positional(alphabet string, n *big.Int, width int) string {
	var text []byte
	radix, digit := big.NewInt(int64(len(alphabet))), new(big.Int)
	for n = new(big.Int).Set(n); n.Sign() > 0 || len(text) == 0 || len(text) < width; {
		n.QuoRem(n, radix, digit)
		text = append([]byte{alphabet[digit.Int64()]}, text...)
	}
	return string(text)
}

// wantFixed is the fixed form by the standard library, or by long division.
func wantFixed(e firn.Encoding, id firn.ID) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(id))
	padded := append(make([]byte, 2), b[:]...)
	var text string
	switch e {
	case firn.Base64URL:
		return base64.RawURLEncoding.EncodeToString(b[:])
	case firn.Base32: // 80 bits are 16 characters, of which the last 13 count
		return base32.NewEncoding(alphabets[e]).EncodeToString(padded)[3:]
	case firn.Base64: // 72 bits are 12
		return base64.NewEncoding(alphabets[e]).EncodeToString(padded[1:])[1:]
	case firn.Base58, firn.Base62:
		return positional(alphabets[e], big.NewInt(int64(id)), widths[e])
	default:
		text = strconv.FormatInt(int64(id), len(alphabets[e]))
	}
	return strings.Repeat("0", widths[e]-len(text)) + text
}

func wantCompact(e firn.Encoding, id firn.ID) string {
	fixed := wantFixed(e, id)
	if e == firn.Base64URL {
		return fixed
	}
	return cmp.Or(strings.TrimLeft(fixed, alphabets[e][:1]), alphabets[e][:1])
}

// sampleIDs returns the ids at which an encoding gets another digit or carries, and
// random ids of all lengths.
func sampleIDs(tb testing.TB) []firn.ID {
	ids := []firn.ID{0, 1, 2, firn.MaxID - 1, firn.MaxID}
	for _, alphabet := range alphabets {
		radix := firn.ID(len(alphabet))
		for power := radix; ; power *= radix {
			ids = append(ids, power-1, power, power+1, power*(radix/2))
			if power > firn.MaxID/radix {
				break
			}
		}
	}
	r := seeded(tb)
	for range 5_000 {
		ids = append(ids, firn.ID(r.Uint64()>>(1+r.IntN(63))))
	}
	kept := ids[:0]
	for _, id := range ids { // products above may have overflowed; those are not ids
		if id >= 0 {
			kept = append(kept, id)
		}
	}
	return kept
}

// seeded returns random numbers and logs the seed, which replays a failure.
func seeded(tb testing.TB) *rand.Rand {
	seed := rand.Uint64()
	tb.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestEncodingWritesWhatOthersWrite(t *testing.T) {
	ids := sampleIDs(t)
	for _, e := range everyEncoding {
		t.Run(e.String(), func(t *testing.T) {
			for _, id := range ids {
				fixed, compact := wantFixed(e, id), wantCompact(e, id)
				if got := e.Fixed(id); got != fixed {
					t.Fatalf("Fixed(%d) = %q, want %q", id, got, fixed)
				}
				if got := e.Compact(id); got != compact {
					t.Fatalf("Compact(%d) = %q, want %q", id, got, compact)
				}
				if got := string(e.AppendFixed([]byte("id="), id)); got != "id="+fixed {
					t.Fatalf("AppendFixed(%d) = %q, want %q", id, got, "id="+fixed)
				}
				if got := string(e.AppendCompact([]byte("id="), id)); got != "id="+compact {
					t.Fatalf("AppendCompact(%d) = %q, want %q", id, got, "id="+compact)
				}
			}
		})
	}
}

func TestEncodingWritesEveryGroupOfDecimalDigits(t *testing.T) {
	for group := range int64(10_000) {
		for _, place := range []int64{1, 1e4, 1e8, 1e12} {
			id := firn.ID(group*place + group%922*1e16)
			want := fmt.Sprintf("%019d", int64(id))
			if got := firn.Decimal.Fixed(id); got != want {
				t.Fatalf("Fixed(%d) = %q, want %q", int64(id), got, want)
			}
		}
	}
}

func TestEncodingReadsBackWhatItWrites(t *testing.T) {
	ids := sampleIDs(t)
	for _, e := range everyEncoding {
		t.Run(e.String(), func(t *testing.T) {
			for _, id := range ids {
				// Any number of leading zeros is allowed.
				fixed, compact := wantFixed(e, id), wantCompact(e, id)
				for cut := 0; cut <= len(fixed)-len(compact); cut++ {
					if got, err := e.Parse(fixed[cut:]); got != id || err != nil {
						t.Fatalf("Parse(%q) = %d, %v, want %d", fixed[cut:], got, err, id)
					}
				}
			}
		})
	}
}

func TestEncodingFixedFormsSortAsTheNumbers(t *testing.T) {
	r := seeded(t)
	for _, e := range everyEncoding {
		if e == firn.Base64URL {
			continue // documented not to sort
		}
		for range 20_000 {
			a, b := firn.ID(r.Uint64()>>(1+r.IntN(63))), firn.ID(r.Uint64()>>(1+r.IntN(63)))
			if r.IntN(2) == 0 { // neighbours
				b = a ^ 1<<r.IntN(8)
			}
			if got, want := strings.Compare(e.Fixed(a), e.Fixed(b)), cmp.Compare(a, b); got != want {
				t.Fatalf("%v of %d and %d sorts %d, the numbers %d: %q, %q", e, a, b, got, want, e.Fixed(a), e.Fixed(b))
			}
		}
	}
	if firn.Base64URL.Fixed(0) < firn.Base64URL.Fixed(13) { // ...A and ...0
		t.Error("base64url sorts, but its documentation says it does not")
	}
}

func TestEncodingReadsOtherLetters(t *testing.T) {
	for _, c := range []struct {
		claim    string
		encoding firn.Encoding
		text     string
		want     firn.ID
	}{
		{"Crockford's example 1234 is 16J", firn.Base32, "16J", 1234},
		{"Crockford's I reads as 1", firn.Base32, "I6J", 1234},
		{"Crockford's i reads as 1", firn.Base32, "i6J", 1234},
		{"Crockford's L reads as 1", firn.Base32, "L6J", 1234},
		{"Crockford's l reads as 1", firn.Base32, "l6J", 1234},
		{"Crockford's O reads as 0", firn.Base32, "1O", 32},
		{"Crockford's o reads as 0", firn.Base32, "1o", 32},
		{"Crockford reads lower case", firn.Base32, "abcdefghjkmn", 373109872978906773},
		{"Crockford reads the end of lower case", firn.Base32, "pqrstvwxyz", 800197332334559},
		{"Crockford reads upper case alike", firn.Base32, "PQRSTVWXYZ", 800197332334559},
		{"hex reads upper case", firn.Hex, "12AB90EF", 0x12ab90ef},
		{"hex reads all upper-case letters", firn.Hex, "ABCDEF", 0xabcdef},
		{"hex reads 0x", firn.Hex, "0x12ab", 0x12ab},
		{"hex reads 0X", firn.Hex, "0XfF", 0xff},
		{"0x comes on top of sixteen digits", firn.Hex, "0x7fffffffffffffff", firn.MaxID},
		{"hex 0x0 is zero", firn.Hex, "0x0", 0},
		{"base36 reads upper case", firn.Base36, "ZIK0ZJ", 2147483647},
		{"base36 reads lower case", firn.Base36, "zik0zj", 2147483647},
		{"base58 begins at 1", firn.Base58, "1", 0},
		{"base62 tells cases apart, upper", firn.Base62, "A", 10},
		{"base62 tells cases apart, lower", firn.Base62, "a", 36},
		{"base64 begins with the hyphen", firn.Base64, "-", 0},
		{"base64 has the underscore after Z", firn.Base64, "_", 37},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got, err := c.encoding.Parse(c.text); got != c.want || err != nil {
				t.Errorf("%v.Parse(%q) = %d, %v, want %d", c.encoding, c.text, got, err, c.want)
			}
		})
	}
}

func TestEncodingErrorsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		claim    string
		encoding firn.Encoding
		text     string
		want     string // part of the error
	}{
		{"empty", firn.Decimal, "", `"" is not a valid decimal id: it is empty`},
		{"empty base64url", firn.Base64URL, "", "it is empty"},
		{"0x without digits", firn.Hex, "0x", "'x' at position 2 is not in its alphabet"},
		{"negative", firn.Decimal, "-5", "ids are not negative"},
		{"negative and long", firn.Decimal, "-1414362783486840832", "ids are not negative"},
		{"a lone sign", firn.Decimal, "-", "'-' at position 1"},
		{"plus", firn.Decimal, "+5", "'+' at position 1"},
		{"plus before many digits", firn.Decimal, "+1414362783486", "'+' at position 1"},
		{"first of a group", firn.Decimal, "x234", "'x' at position 1"},
		{"second of a group", firn.Decimal, "1x34", "'x' at position 2"},
		{"third of a group", firn.Decimal, "12x4", "'x' at position 3"},
		{"last of a group", firn.Decimal, "123x", "'x' at position 4"},
		{"before the groups, one digit", firn.Decimal, "x2345", "'x' at position 1"},
		{"before the groups, two digits", firn.Decimal, "1x3456", "'x' at position 2"},
		{"before the groups, three digits", firn.Decimal, "12x4567", "'x' at position 3"},
		{"an early group", firn.Decimal, "123456789x123456", "'x' at position 10"},
		{"every byte bad", firn.Decimal, "xxxx", "'x' at position 1"},
		{"position counts 0x", firn.Hex, "0x12g4", "'g' at position 5"},
		{"a sign after 0x", firn.Hex, "0x-5", "'-' at position 3"},
		{"space", firn.Base36, "ab c", "' ' at position 3"},
		{"Crockford has no U", firn.Base32, "1U", "'U' at position 2"},
		{"Crockford with hyphens", firn.Base32, "16J-16J", "'-' at position 4"},
		{"base58 has no 0", firn.Base58, "20", "'0' at position 2"},
		{"base58 has no O", firn.Base58, "2O", "'O' at position 2"},
		{"base58 has no I", firn.Base58, "2I", "'I' at position 2"},
		{"base58 has no l", firn.Base58, "2l", "'l' at position 2"},
		{"base62 has no hyphen", firn.Base62, "a-b", "'-' at position 2"},
		{"base2 has no 2", firn.Base2, "102", "'2' at position 3"},
		{"letters beyond ASCII", firn.Base62, "aé", "'é' at position 2"},
		{"bytes that are no letter", firn.Base62, "a\xff", "byte 0xff at position 2"},
		{"a NUL", firn.Decimal, "1\x00", `'\x00' at position 2`},
		{"too long", firn.Decimal, "00000000000000000001", "it has 20 characters, at most 19 are allowed"},
		{"too long after 0x", firn.Hex, "0x00000000000000001", "it has 17 characters, at most 16"},
		{"too long base58", firn.Base58, "111111111112", "it has 12 characters, at most 11"},
		{"short base64url", firn.Base64URL, "AAAAAAAAAA", "it has 10 characters, an id has 11"},
		{"long base64url", firn.Base64URL, "AAAAAAAAAAAA", "it has 12 characters, an id has 11"},
		{"padded base64url", firn.Base64URL, "AAAAAAAAAAA=", "'=' at position 12"},
		{"base64url of ordinary base64", firn.Base64URL, "AAAA+AAAAAA", "'+' at position 5"},
		{"base64url with stray bits", firn.Base64URL, "AAAAAAAAAAB", "'B' at position 11 has bits beyond the eight bytes"},
		{"base64url with a high bit", firn.Base64URL, "gAAAAAAAAAA", "above the greatest id, 9223372036854775807 (63 bits)"},
		{"2^63", firn.Decimal, "9223372036854775808", "above the greatest id, 9223372036854775807 (63 bits)"},
		{"no such encoding", firn.Encoding(99), "1", "Encoding(99) is not an encoding"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			id, err := c.encoding.Parse(c.text)
			var syntax *firn.SyntaxError
			if id != 0 || !errors.As(err, &syntax) || !errors.Is(err, firn.ErrSyntax) {
				t.Fatalf("%v.Parse(%q) = %d, %v, want a *SyntaxError", c.encoding, c.text, id, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestEncodingRefusesNumbersAbove63Bits(t *testing.T) {
	max := new(big.Int).SetInt64(int64(firn.MaxID))
	for _, e := range everyEncoding {
		if e == firn.Base64URL {
			continue // in the table above: its texts are not numbers
		}
		t.Run(e.String(), func(t *testing.T) {
			radix := int64(len(alphabets[e]))
			all := new(big.Int).Exp(big.NewInt(radix), big.NewInt(int64(widths[e])), nil)
			// Every number that would look like an id if sums overflowed at 2^64, and the
			// numbers next to it.
			for wrap := int64(0); ; wrap++ {
				base := new(big.Int).Lsh(big.NewInt(wrap), 63)
				if base.Cmp(all) >= 0 {
					break
				}
				for delta := int64(-3); delta <= 3; delta++ {
					n := new(big.Int).Add(base, big.NewInt(delta))
					if n.Cmp(max) <= 0 || n.Cmp(all) >= 0 {
						continue
					}
					text := positional(alphabets[e], n, 0)
					if id, err := e.Parse(text); id != 0 || err == nil || !strings.Contains(err.Error(), "63 bits") {
						t.Errorf("Parse(%q), which is %v, = %d, %v", text, n, id, err)
					}
				}
			}
			greatest := strings.Repeat(alphabets[e][radix-1:], widths[e])
			if id, err := e.Parse(greatest); e != firn.Base2 && err == nil {
				t.Errorf("Parse(%q) = %d", greatest, id)
			}
		})
	}
}

func TestEncodingsWriteNegativeIDsAsTextThatNoEncodingReads(t *testing.T) {
	for _, id := range []firn.ID{-1, -5, -1 << 63} {
		for _, e := range append(slices.Clone(everyEncoding), firn.Encoding(99)) {
			texts := []string{
				e.Fixed(id), e.Compact(id), string(e.AppendFixed(nil, id)), string(e.AppendCompact(nil, id)),
			}
			if texts[0] != texts[2] || texts[1] != texts[3] {
				t.Errorf("%v: the appended forms differ: %q", e, texts)
			}
			for _, text := range texts {
				if got, err := e.Parse(text); err == nil {
					t.Errorf("%v wrote %d as %q and reads it as %d", e, id, text, got)
				}
				if e == firn.Decimal && text == id.String() {
					continue // base64 has a hyphen of its own and reads -5
				}
				refusedByAll(t, text)
			}
		}
	}
	if got := firn.Decimal.Compact(-5); got != "-5" {
		t.Errorf("the compact decimal of -5 is %q", got)
	}
	if got := firn.Base58.Compact(-5); got != "negative(-5)" {
		t.Errorf("base58 of -5 is %q", got)
	}
}

func refusedByAll(t *testing.T, text string) {
	t.Helper()
	for _, e := range everyEncoding {
		if id, err := e.Parse(text); err == nil {
			t.Errorf("%v reads %q as %d", e, text, id)
		}
	}
}

func TestAnInvalidEncodingWritesTextThatNoEncodingReads(t *testing.T) {
	e := firn.Encoding(99)
	if e.String() != "Encoding(99)" {
		t.Errorf("it is called %q", e)
	}
	for _, text := range []string{e.Fixed(7), e.Compact(7)} {
		if text != "encoding(99)" {
			t.Errorf("it writes %q", text)
		}
		refusedByAll(t, text)
	}
}

func TestEncodingNamesReadBack(t *testing.T) {
	if next := firn.Encoding(len(alphabets)); next.String() != fmt.Sprintf("Encoding(%d)", len(alphabets)) {
		t.Errorf("the tests have no alphabet of %v", next)
	}
	for _, e := range everyEncoding {
		if got, err := firn.ParseEncoding(e.String()); got != e || err != nil {
			t.Errorf("ParseEncoding(%q) = %v, %v", e.String(), got, err)
		}
	}
	for _, name := range []string{"", "Base58", "base 58", "base57", "Encoding(99)"} {
		_, err := firn.ParseEncoding(name)
		if !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "decimal, hex, base32") {
			t.Errorf("ParseEncoding(%q): %v, want the list of names", name, err)
		}
	}
}

func TestEncodingAllocatesNothingButTheString(t *testing.T) {
	id := firn.ID(1414362783486840832)
	buf := make([]byte, 0, 64)
	for _, e := range everyEncoding {
		fixed, compact := e.Fixed(id), e.Compact(id)
		for _, c := range []struct {
			what string
			want float64
			do   func()
		}{
			{"Fixed", 1, func() { fixed = e.Fixed(id) }},
			{"Compact", 1, func() { compact = e.Compact(id) }},
			{"AppendFixed", 0, func() { buf = e.AppendFixed(buf[:0], id) }},
			{"AppendCompact", 0, func() { buf = e.AppendCompact(buf[:0], id) }},
			{"Parse of the fixed form", 0, func() { id, _ = e.Parse(fixed) }},
			{"Parse of the compact form", 0, func() { id, _ = e.Parse(compact) }},
		} {
			if got := testing.AllocsPerRun(100, c.do); got > c.want {
				t.Errorf("%v: %s allocates %v times, want %v", e, c.what, got, c.want)
			}
		}
	}
}
