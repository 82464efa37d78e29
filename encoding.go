package firn

import (
	"fmt"
	"strings"
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
	name  string
	zero  byte   // the digit 0
	width int    // digits of MaxID
	power uint64 // the radix to the power of four
	limit uint64 // MaxID / power
	// place holds, for each position in a group of four digits, the last one
	// first, what a byte is worth there; notDigit for a byte that is no digit.
	place [4][256]uint32
}

// notDigit is above the greatest value of a group, 64^4 - 1, and four times notDigit fits
// a uint32. So the sum of the places shows whether any byte of the group was no digit.
const notDigit = 1 << 26

// schemes takes 36 KiB and, at the start of a program, some 30 µs to fill.
var schemes = func() (all [encodings]scheme) {
	all[Decimal].fill("decimal", digits62[:10], 19, "", "")
	all[Hex].fill("hex", digits36[:16], 16, "ABCDEF", "abcdef")
	all[Base32].fill("base32", digits32, 13, "abcdefghjkmnpqrstvwxyziIlLoO", "ABCDEFGHJKMNPQRSTVWXYZ111100")
	all[Base36].fill("base36", digits36, 13, digits62[10:36], digits36[10:])
	all[Base58].fill("base58", digits58, 11, "", "")
	all[Base62].fill("base62", digits62, 11, "", "")
	all[Base64].fill("base64", digits64, 11, "", "")
	all[Base64URL].fill("base64url", digits64URL, 11, "", "")
	all[Base2].fill("base2", "01", 63, "", "")
	return all
}()

// fill sets up the scheme of an alphabet. Parse also accepts each byte of also, as the
// digit at the same position of as.
func (s *scheme) fill(name, digits string, width int, also, as string) {
	radix := uint32(len(digits))
	s.name, s.zero, s.width = name, digits[0], width
	s.power = uint64(radix * radix * radix * radix)
	s.limit = uint64(MaxID) / s.power
	worth := uint32(1)
	for p := range s.place {
		values := &s.place[p]
		for i := range values {
			values[i] = notDigit
		}
		for i := range len(digits) {
			values[digits[i]] = uint32(i) * worth
		}
		for i := range len(also) {
			values[also[i]] = values[as[i]]
		}
		worth *= radix
	}
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
