package firn

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Encoding is a way to write an id as text. All but [Base64URL] have a
// fixed-width form, which sorts bytewise as the numbers do, and a compact one
// without leading zeros; [Encoding.Parse] reads both.
type Encoding uint8

// The encodings.
const (
	Decimal Encoding = iota
	Hex              // lower case
	Base32           // Crockford's: no I, L, O, U; either case is read, I and L as 1, O as 0
	Base36           // digits and lower case; either case is read
	Base58           // Bitcoin's alphabet: no 0, O, I, l
	Base62           // digits, upper case, lower case
	// Base64 has the 64 characters of base64url in ASCII order, so that it
	// sorts; a base64 decoder does not read it as bytes.
	Base64
	// Base64URL is RFC 4648 base64url, unpadded, of the id's eight big-endian
	// bytes: any language's decoder reads it. It is the one form that does not
	// sort, and has no compact form.
	Base64URL
	Base2 // binary digits
	encodings
)

const (
	digits32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	digits36 = "0123456789abcdefghijklmnopqrstuvwxyz"
	digits58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits64 = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
)

// scheme is what differs between positional encodings.
type scheme struct {
	name   string
	digits string
	width  int // digits of MaxID
	radix  uint64
	values [256]uint8 // of each byte as a digit, notDigit otherwise
}

const notDigit = 0xff

var schemes = [encodings]scheme{
	Decimal:   positional("decimal", digits62[:10], 19),
	Hex:       positional("hex", digits36[:16], 16).either("ABCDEF", "abcdef"),
	Base32:    positional("base32", digits32, 13).either("abcdefghjkmnpqrstvwxyziIlLoO", "ABCDEFGHJKMNPQRSTVWXYZ111100"),
	Base36:    positional("base36", digits36, 13).either(digits62[10:36], digits36[10:]),
	Base58:    positional("base58", digits58, 11),
	Base62:    positional("base62", digits62, 11),
	Base64:    positional("base64", digits64, 11),
	Base64URL: {name: "base64url", width: 11},
	Base2:     positional("base2", "01", 63),
}

func positional(name, digits string, width int) scheme {
	s := scheme{name: name, digits: digits, width: width, radix: uint64(len(digits))}
	for i := range s.values {
		s.values[i] = notDigit
	}
	for i := range len(digits) {
		s.values[digits[i]] = uint8(i)
	}
	return s
}

// either lets each byte of from be read as the digit at the same place of to.
func (s scheme) either(from, to string) scheme {
	for i := range len(from) {
		s.values[from[i]] = s.values[to[i]]
	}
	return s
}

// Encodings returns all encodings.
func Encodings() []Encoding {
	list := make([]Encoding, encodings)
	for i := range list {
		list[i] = Encoding(i)
	}
	return list
}

// ParseEncoding returns the encoding of that name; errors match [ErrSyntax].
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

// valid maps what is no Encoding to Decimal, so that no method panics.
func (e Encoding) valid() Encoding {
	if e >= encodings {
		return Decimal
	}
	return e
}

// String returns the name [ParseEncoding] reads.
func (e Encoding) String() string { return schemes[e.valid()].name }

// Width returns how many characters the fixed-width form has.
func (e Encoding) Width() int { return schemes[e.valid()].width }

// Fixed returns the fixed-width form. Negative ids, which no generator makes,
// have no form in any encoding but the compact decimal: what is returned for
// them is text that Parse refuses.
func (e Encoding) Fixed(id ID) string {
	var buf [64]byte
	return string(e.AppendFixed(buf[:0], id))
}

// Compact returns the form without leading zeros; see Fixed for negative ids.
func (e Encoding) Compact(id ID) string {
	var buf [64]byte
	return string(e.AppendCompact(buf[:0], id))
}

// AppendFixed appends the fixed-width form to dst.
func (e Encoding) AppendFixed(dst []byte, id ID) []byte {
	return e.append(dst, id, false)
}

// AppendCompact appends the compact form to dst.
func (e Encoding) AppendCompact(dst []byte, id ID) []byte {
	return e.append(dst, id, true)
}

func (e Encoding) append(dst []byte, id ID, compact bool) []byte {
	if id < 0 {
		return appendNegative(dst, id, e, compact)
	}
	if e == Base64URL {
		b := id.Bytes()
		return base64.RawURLEncoding.AppendEncode(dst, b[:])
	}
	e = e.valid()
	var buf [64]byte
	s := &schemes[e]
	// Counting down from the end of a buffer of constant size keeps the bounds
	// checks out of the loops; a constant divisor makes a multiplication of the
	// division, which is what costs here.
	i, u := len(buf), uint64(id)
	switch e {
	case Hex:
		for ; u > 0; u >>= 4 {
			i--
			buf[i&63] = digits36[u&15]
		}
	case Base2:
		for ; u > 0; u >>= 1 {
			i--
			buf[i&63] = '0' + byte(u&1)
		}
	case Base32:
		for ; u > 0; u >>= 5 {
			i--
			buf[i&63] = digits32[u&31]
		}
	case Base36:
		for ; u > 0; u /= 36 {
			i--
			buf[i&63] = digits36[u%36]
		}
	case Base58:
		for ; u > 0; u /= 58 {
			i--
			buf[i&63] = digits58[u%58]
		}
	case Base62:
		for ; u > 0; u /= 62 {
			i--
			buf[i&63] = digits62[u%62]
		}
	case Base64:
		for ; u > 0; u >>= 6 {
			i--
			buf[i&63] = digits64[u&63]
		}
	default:
		for ; u > 0; u /= 10 {
			i--
			buf[i&63] = '0' + byte(u%10)
		}
	}
	least := len(buf) - 1
	if !compact {
		least = len(buf) - s.width
	}
	for i > least {
		i--
		buf[i] = s.digits[0]
	}
	return append(dst, buf[i:]...)
}

// appendNegative writes what [Encoding.Fixed] says of negative ids.
func appendNegative(dst []byte, id ID, e Encoding, compact bool) []byte {
	if e.valid() == Decimal && compact {
		return fmt.Appendf(dst, "%d", int64(id))
	}
	return fmt.Appendf(dst, "invalid(%d)", int64(id))
}

// Parse reads an id in either form, with any number of leading zeros up to the
// fixed width; hex may begin with 0x. Errors are *[SyntaxError]s.
func (e Encoding) Parse(text string) (ID, error) {
	e = e.valid()
	if e == Base64URL {
		return parseBase64URL(text)
	}
	s := &schemes[e]
	digits := text
	if e == Hex && (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X")) {
		digits = text[2:]
	}
	if digits == "" {
		return 0, NewSyntaxError(s.name+" id", text, "it is empty")
	}
	if len(digits) > s.width {
		return 0, NewSyntaxError(s.name+" id", text,
			fmt.Sprintf("it has %d characters, at most %d are allowed", len(digits), s.width))
	}
	var u uint64
	for i := range len(digits) {
		v := s.values[digits[i]]
		if v == notDigit {
			return 0, s.badDigit(text, i+len(text)-len(digits))
		}
		// This keeps the product within 63 bits, so the sum cannot wrap 64.
		if u > uint64(MaxID)/s.radix {
			return 0, s.tooLarge(text)
		}
		if u = u*s.radix + uint64(v); u > uint64(MaxID) {
			return 0, s.tooLarge(text)
		}
	}
	return ID(u), nil
}

func (s *scheme) tooLarge(text string) error {
	return NewSyntaxError(s.name+" id", text, fmt.Sprintf("it is above the largest id, %d (63 bits)", int64(MaxID)))
}

func (s *scheme) badDigit(text string, at int) error {
	if text[at] == '-' && at == 0 {
		return NewSyntaxError(s.name+" id", text, "ids are not negative")
	}
	r, _ := utf8.DecodeRuneInString(text[at:])
	return NewSyntaxError(s.name+" id", text, fmt.Sprintf("%q at position %d is no digit of it", r, at+1))
}

func parseBase64URL(text string) (ID, error) {
	const what = "base64url id"
	if len(text) != schemes[Base64URL].width {
		return 0, NewSyntaxError(what, text, fmt.Sprintf("it has %d characters, 11 make an id", len(text)))
	}
	var buf [9]byte
	n, err := base64.RawURLEncoding.Strict().Decode(buf[:], []byte(text))
	if err != nil || n != 8 {
		return 0, NewSyntaxError(what, text, "it is not RFC 4648 base64url of eight bytes")
	}
	u := binary.BigEndian.Uint64(buf[:8])
	if u > uint64(MaxID) {
		return 0, NewSyntaxError(what, text, "it has 64 bits, ids have at most 63")
	}
	return ID(u), nil
}

// A Reading is one way to read a text as an id.
type Reading struct {
	Encoding Encoding
	ID       ID
}

// Readings returns every way to read text as an id, the likelier first:
// decimal before all when there are only digits, then encodings of which the
// text has the fixed width, then the rest. It is empty when there is none.
func Readings(text string) []Reading {
	var exact, rest []Reading
	for _, e := range Encodings() {
		id, err := e.Parse(text)
		if err != nil {
			continue
		}
		r := Reading{e, id}
		if e == Decimal || len(text) == e.Width() || e == Hex && strings.HasPrefix(strings.ToLower(text), "0x") {
			exact = append(exact, r)
		} else {
			rest = append(rest, r)
		}
	}
	return append(exact, rest...)
}
