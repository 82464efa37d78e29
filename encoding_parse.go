package firn

import (
	"fmt"
	"unicode/utf8"
)

// Parse reads an id, with leading zeros up to the fixed width or without; [Base64URL]
// always has 11 characters. The error is a *[SyntaxError] that says what is wrong: an
// empty text, a sign, a character and its position (in bytes, from 1), the length, or a
// number above [MaxID]. Parse allocates memory for errors only.
func (e Encoding) Parse(text string) (ID, error) { return parse(e, text) }

// parse is generic so that bytes from JSON or a database need no copy.
//
// It is fast because it reads the digits in groups of four, which makes the chain of
// multiplications a quarter as long, and because it checks only once, at the end,
// that every byte was a digit and the number fits.
func parse[T string | []byte](e Encoding, text T) (ID, error) {
	if e >= encodings {
		return 0, refuse(e, string(text))
	}
	s := &schemes[e]
	i, n := 0, len(text)
	if e == Hex && n > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		i = 2
	}
	if n == i || n-i > s.width {
		return 0, refuse(e, string(text))
	}
	v := s.worth()
	p0, p1, p2, p3, power := &v.place[0], &v.place[1], &v.place[2], &v.place[3], v.power
	var seen uint32
	switch (n - i) & 3 {
	case 3:
		seen = p2[text[i]] + p1[text[i+1]] + p0[text[i+2]]
		i += 3
	case 2:
		seen = p1[text[i]] + p0[text[i+1]]
		i += 2
	case 1:
		seen = p0[text[i]]
		i++
	}
	var before uint64 // u before its last group was added
	u := uint64(seen)
	for ; i < n-3; i += 4 {
		group := p3[text[i]] + p2[text[i+1]] + p1[text[i+2]] + p0[text[i+3]]
		seen |= group
		before = u
		u = u*power + uint64(group)
	}
	if e == Base64URL {
		// The first seven characters hold 42 bits. The last four hold 22, and two zero bits.
		if seen < notDigit && n == s.width && u&3 == 0 && before < 1<<41 {
			return ID(before<<22 | u>>2&(1<<22-1)), nil
		}
		return 0, refuse(e, string(text))
	}
	// The width keeps the number before the last group below 63 bits, and the limit
	// keeps its product below 63 bits, so the sum cannot have overflowed.
	if seen >= notDigit || before > v.limit || u > uint64(MaxID) {
		return 0, refuse(e, string(text))
	}
	return ID(u), nil
}

// refuse returns the error for a text that parse cannot read.
func refuse(e Encoding, text string) error {
	if e >= encodings {
		return NewSyntaxError("id", text, e.String()+" is not an encoding, see ParseEncoding")
	}
	s, what, skip := &schemes[e], e.String()+" id", 0
	if e == Hex && len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		skip = len("0x")
	}
	last := &s.worth().place[0]
	for at := skip; at < len(text); at++ {
		if last[text[at]] < notDigit {
			continue
		}
		if at == 0 && text[0] == '-' && len(text) > 1 {
			return NewSyntaxError(what, text, "ids are not negative")
		}
		return NewSyntaxError(what, text, fmt.Sprintf("%s at position %d is not in its alphabet", character(text[at:]), at+1))
	}
	length := len(text) - skip // in characters as well, since all are digits
	switch {
	case length == 0:
		return NewSyntaxError(what, text, "it is empty")
	case e == Base64URL && length != s.width:
		return NewSyntaxError(what, text, fmt.Sprintf("it has %d characters, an id has %d", length, s.width))
	case length > s.width:
		return NewSyntaxError(what, text, fmt.Sprintf("it has %d characters, at most %d are allowed", length, s.width))
	case e == Base64URL && last[text[s.width-1]]&3 != 0:
		return NewSyntaxError(what, text, fmt.Sprintf("%s at position %d has bits beyond the eight bytes",
			character(text[s.width-1:]), s.width))
	default:
		return NewSyntaxError(what, text, fmt.Sprintf("it is above the greatest id, %d (63 bits)", int64(MaxID)))
	}
}

// character names the first character of text.
func character(text string) string {
	if r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size > 1 {
		return fmt.Sprintf("%q", r)
	}
	return fmt.Sprintf("byte 0x%02x", text[0])
}
