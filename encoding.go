package firn

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// An Encoding is a way to write an id as text. Each has a fixed-width form, see
// [Encoding.Fixed], and a compact form without leading zeros, see [Encoding.Compact].
// [Encoding.Parse] reads both. Fixed-width forms sort bytewise as the ids do, except in
// [Base64URL]. Encodings may be used concurrently.
//
// Base58, Base62, Base64 and Base64URL are case-sensitive. Where case is ignored, as in
// MySQL columns by default, the texts of different ids may be equal.
//
// A value other than the constants below writes text that no encoding reads, and
// its Parse fails for any text.
type Encoding uint8

const (
	// Decimal is the decimal number: at most 19 digits.
	Decimal Encoding = iota
	// Hex has 16 lower-case digits. Parse accepts either case and a prefix 0x.
	Hex
	// Base32 is Crockford's (crockford.com/base32.html), 13 upper-case
	// characters without I, L, O and U. Parse accepts either case, reads I and L as 1
	// and O as 0, and refuses hyphens.
	Base32
	// Base36 has 13 digits and lower-case letters. Parse accepts either case.
	Base36
	// Base58 has Bitcoin's alphabet, 11 characters without 0, O, I and l: hard to misread.
	Base58
	// Base62 has 11 digits, upper-case and lower-case letters.
	Base62
	// Base64 has 11 characters of base64url's alphabet, ordered as in ASCII so that it
	// sorts. It is not RFC 4648: a base64 decoder reads other bytes from it.
	Base64
	// Base64URL is RFC 4648 base64url, without padding, of the id's eight big-endian
	// bytes: 11 characters that any language's decoder reads. It does not sort, and
	// its compact form is the fixed-width one.
	Base64URL
	// Base2 has 63 binary digits.
	Base2

	encodings // the number of encodings
)

const (
	digits32    = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	digits36    = "0123456789abcdefghijklmnopqrstuvwxyz"
	digits58    = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	digits62    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits64    = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	digits64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)

// scheme is what differs between encodings.
type scheme struct {
	name   string
	digits string
	width  int // digits of MaxID
	// Parse also accepts each byte of also, as the digit at the same position of as.
	also, as string
	values   atomic.Pointer[values] // nil until an id is read
}

// values are what the digits of a scheme are worth.
type values struct {
	power uint64 // the radix to the power of four
	limit uint64 // MaxID / power
	// place holds, for each position in a group of four digits, the last one
	// first, what a byte is worth there; notDigit for a byte that is no digit.
	place [4][256]uint32
}

// notDigit is above the greatest value of a group, 64^4 - 1, and four times notDigit fits
// a uint32. So the sum of the places shows whether any byte of the group was no digit.
const notDigit = 1 << 26

var schemes = [encodings]scheme{
	Decimal:   {name: "decimal", digits: digits62[:10], width: 19},
	Hex:       {name: "hex", digits: digits36[:16], width: 16, also: "ABCDEF", as: "abcdef"},
	Base32:    {name: "base32", digits: digits32, width: 13, also: "abcdefghjkmnpqrstvwxyziIlLoO", as: "ABCDEFGHJKMNPQRSTVWXYZ111100"},
	Base36:    {name: "base36", digits: digits36, width: 13, also: digits62[10:36], as: digits36[10:]},
	Base58:    {name: "base58", digits: digits58, width: 11},
	Base62:    {name: "base62", digits: digits62, width: 11},
	Base64:    {name: "base64", digits: digits64, width: 11},
	Base64URL: {name: "base64url", digits: digits64URL, width: 11},
	Base2:     {name: "base2", digits: "01", width: 63},
}

// worth returns the values of the scheme. The first call makes them, 4 KiB: a program that only writes ids needs none.
func (s *scheme) worth() *values {
	if v := s.values.Load(); v != nil {
		return v
	}
	return s.evaluate()
}

// evaluate makes the values. Concurrent first calls make equal ones.
func (s *scheme) evaluate() *values {
	radix := uint32(len(s.digits))
	power := uint64(radix * radix * radix * radix)
	v := &values{power: power, limit: uint64(MaxID) / power}
	worth := uint32(1)
	for p := range v.place {
		place := &v.place[p]
		for i := range place {
			place[i] = notDigit
		}
		for i := range len(s.digits) {
			place[s.digits[i]] = uint32(i) * worth
		}
		for i := range len(s.also) {
			place[s.also[i]] = place[s.as[i]]
		}
		worth *= radix
	}
	s.values.Store(v)
	return v
}

// ParseEncoding returns the encoding with a name that [Encoding.String] writes. For
// any other name it returns a *[SyntaxError] that lists the names.
func ParseEncoding(name string) (Encoding, error) {
	names := make([]string, encodings)
	for i := range schemes {
		if schemes[i].name == name {
			return Encoding(i), nil
		}
		names[i] = schemes[i].name
	}
	return 0, NewSyntaxError("encoding", name, strings.Join(names, ", ")+" are allowed")
}

// String returns the name [ParseEncoding] reads, such as "base58".
func (e Encoding) String() string {
	if e >= encodings {
		return fmt.Sprintf("Encoding(%d)", uint8(e))
	}
	return schemes[e].name
}
