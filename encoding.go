package firn

import (
	"fmt"
	"strings"
)

// An Encoding is a way to write an id as text. Every one has a fixed-width
// form, see [Encoding.Fixed], which in all but [Base64URL] sorts bytewise as the numbers
// do, and a compact one without leading zeros, see [Encoding.Compact];
// [Encoding.Parse] reads both. Encodings may be used concurrently.
//
// Base58, Base62, Base64 and Base64URL are case-sensitive: many ids made at once are equal if
// case is ignored, as in columns of MySQL by default.
//
// A value other than the constants below writes text that no encoding reads, and
// reads nothing.
type Encoding uint8

const (
	// Decimal is the number as people write it: at most 19 digits.
	Decimal Encoding = iota
	// Hex has 16 lower-case digits; either case is read, with 0x in front or without.
	Hex
	// Base32 is Crockford's (crockford.com/base32.html), 13 upper-case
	// characters without I, L, O and U. Either case is read, I and L as 1 and O
	// as 0; hyphens are refused.
	Base32
	// Base36 has 13 digits and lower-case letters; either case is read.
	Base36
	// Base58 has Bitcoin's alphabet, 11 characters without 0, O, I and l: hard to misread.
	Base58
	// Base62 has 11 digits, upper-case and lower-case letters.
	Base62
	// Base64 has 11 of the characters of base64url, numbered in ASCII order so
	// that it sorts. It is not RFC 4648: a base64 decoder reads other bytes from it.
	Base64
	// Base64URL is RFC 4648 base64url without padding of the id's eight
	// big-endian bytes, 11 characters that any language's decoder reads. It is
	// the one form that does not sort, and has no compact form of its own.
	Base64URL
	// Base2 has 63 binary digits.
	Base2

	encodings // how many there are
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

// notDigit lies above the value of every group, 64^4 - 1, and four of it still
// fit a uint32: a sum of places shows whether any byte of the group was bad.
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

// fill sets up the scheme of an alphabet. It reads each byte of also as the digit at
// the same place of as.
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

// Encodings returns all encodings, [Decimal] first.
func Encodings() []Encoding {
	list := make([]Encoding, encodings)
	for i := range list {
		list[i] = Encoding(i)
	}
	return list
}

// ParseEncoding returns the encoding of that name, as [Encoding.String] writes
// it; for another it returns a *[SyntaxError] that lists the names there are.
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

// Width returns how many characters the fixed-width form has: 19 for decimal
// to 11 for base64, 63 for base2, 0 for a value that is no encoding.
func (e Encoding) Width() int {
	if e >= encodings {
		return 0
	}
	return schemes[e].width
}
