package prefixed

import (
	"fmt"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// digits are Crockford's (crockford.com/base32.html).
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// worth has the value of each byte as a digit; 0xff if the byte is no digit.
var worth = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xff
	}
	for i := range byte(len(digits)) {
		c := digits[i]
		table[c] = i
		if c >= 'A' {
			table[c|0x20] = i
		}
	}
	for _, c := range "iIlL" {
		table[c] = 1
	}
	table['o'], table['O'] = 0, 0
	return table
}()

// maxBytes bounds the length of ids.
const maxBytes = 1024

// width returns how many digits n bytes have.
func width(n int) int { return n/5*8 + (n%5*8+4)/5 }

// Bytes returns the prefix, an underscore and the bytes of an id, such as id[:] of a UUID
// or an object id. The bytes are written as one big-endian number in base32 with a fixed
// width: 8/5 of the number of bytes, rounded up. No bytes, or more than 1024, give a text
// that ParseBytes refuses.
func (p Prefix) Bytes(id []byte) string {
	start, n := len(p.text)+1, width(len(id))
	text := append(append(make([]byte, 0, start+n), p.text...), '_')[:start+n]
	out := text[start:]
	// Five bytes make eight digits. The first group takes the remaining bytes, so that the
	// unused bits are zeros in the first digit.
	head := len(id) % 5
	group(out[:width(head)], id[:head])
	for out, id = out[width(head):], id[head:]; len(id) > 0; out, id = out[8:], id[5:] {
		group(out[:8], id[:5])
	}
	return string(text)
}

// group writes up to five bytes as a number that has as many digits as out is long.
func group(out, id []byte) {
	n := uint64(0)
	for _, b := range id {
		n = n<<8 | uint64(b)
	}
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = digits[n&31]
		n >>= 5
	}
}

// ParseBytes reads an id of n bytes that Bytes wrote. It accepts either case, I and L as 1
// and O as 0. The error is a *[firn.SyntaxError] that says what is wrong (another prefix,
// the length, a character, or bits beyond the bytes), or a *[firn.RangeError] for n
// outside 1 to 1024.
//
//	b, err := users.ParseBytes(text, 16)
//	if err != nil { … }
//	id := uuid.UUID(b)
func (p Prefix) ParseBytes(text string, n int) ([]byte, error) {
	if n < 1 || n > maxBytes {
		return nil, firn.NewRangeError("number of bytes", int64(n), 1, maxBytes, "the bytes of an id with a prefix")
	}
	rest, err := p.cut(text, width(n))
	if err != nil {
		return nil, err
	}
	id := make([]byte, n)
	head := n % 5
	over, bad := ungroup(id[:head], rest[:width(head)])
	for at, from := head, width(head); at < n; at, from = at+5, from+8 {
		_, more := ungroup(id[at:at+5], rest[from:from+8])
		bad = bad || more
	}
	switch {
	case bad:
		return nil, p.badDigit(text)
	case over:
		return nil, firn.NewSyntaxError(p.what(), text, fmt.Sprintf("the part after the prefix has more than %d bytes", n))
	}
	return id, nil
}

// ungroup is the inverse of group. It reports whether there are bits beyond the bytes, and
// whether a character is no digit.
func ungroup(id []byte, text string) (over, bad bool) {
	n, seen := uint64(0), byte(0)
	for i := range len(text) {
		d := worth[text[i]]
		seen |= d
		n = n<<5 | uint64(d&31)
	}
	for i := len(id) - 1; i >= 0; i-- {
		id[i] = byte(n)
		n >>= 8
	}
	return n > 0, seen > 31
}

// badDigit returns the error for the first character after the prefix that is no digit.
func (p Prefix) badDigit(text string) error {
	at := len(p.text) + 1
	for at < len(text)-1 && worth[text[at]] <= 31 {
		at++
	}
	return firn.NewSyntaxError(p.what(), text, fmt.Sprintf("after the prefix, %s at position %d is not in its alphabet",
		character(text[at:]), at-len(p.text)))
}

// character names the first character of text.
func character(text string) string {
	if r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size > 1 {
		return fmt.Sprintf("%q", r)
	}
	return fmt.Sprintf("byte 0x%02x", text[0])
}
