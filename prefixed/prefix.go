package prefixed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// A Prefix says what ids are of. It is a small comparable value whose methods
// may be called concurrently. The zero Prefix is not valid: what it writes
// begins with an underscore and is read by none, and it reads nothing.
type Prefix struct{ text string }

const maxPrefix = 63

// New returns the prefix of that text: 1 to 63 of a-z, 0-9 and the underscore,
// neither beginning nor ending with an underscore. That is what TypeID allows,
// and digits besides. The error is a *[firn.SyntaxError].
func New(text string) (Prefix, error) {
	const what = "prefix"
	refuse := func(format string, args ...any) (Prefix, error) {
		return Prefix{}, firn.NewSyntaxError(what, text, fmt.Sprintf(format, args...))
	}
	switch {
	case text == "":
		return refuse("it is empty, 1 to %d characters are allowed", maxPrefix)
	case len(text) > maxPrefix:
		return refuse("it has %d bytes, at most %d characters are allowed", len(text), maxPrefix)
	}
	for at := range len(text) {
		c := text[at]
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
		case c == '_' && at > 0 && at < len(text)-1:
		case c == '_':
			return refuse("an underscore may neither begin nor end it")
		default:
			return refuse("%s at position %d is none of a-z, 0-9 and _", character(text[at:]), at+1)
		}
	}
	return Prefix{text}, nil
}

// String returns the text that [New] was given, without the underscore that
// follows it in ids.
func (p Prefix) String() string { return p.text }

// Split takes a text apart at its last underscore, for programs that are given
// ids of all kinds: what follows is for [firn.Base32], [Prefix.ParseID] or
// [Prefix.ParseBytes] to read. The error is a *[firn.SyntaxError] for a text
// without an underscore, and that of New.
func Split(text string) (p Prefix, rest string, err error) {
	at := strings.LastIndexByte(text, '_')
	if at < 0 {
		return Prefix{}, "", firn.NewSyntaxError(plain, text, "it has no prefix, as ord is one in ord_1786KEMYM8400")
	}
	if p, err = New(text[:at]); err != nil {
		return Prefix{}, "", err
	}
	return p, text[at+1:], nil
}

const plain = "id with a prefix"

// what is what errors call a text that was expected.
func (p Prefix) what() string { return "id with the prefix " + p.text }

// cut returns what follows the prefix, which has to have a width.
func (p Prefix) cut(text string, width int) (string, error) {
	if p.text == "" {
		return "", firn.NewSyntaxError(plain, text, "none can be read with the zero Prefix: get one from New")
	}
	rest, found := strings.CutPrefix(text, p.text)
	if !found || rest == "" || strings.LastIndexByte(rest, '_') != 0 { // the prefix ends at the last underscore
		return "", p.other(text)
	}
	rest = rest[1:]
	if len(rest) != width {
		return "", firn.NewSyntaxError(p.what(), text, fmt.Sprintf("%d characters follow the prefix, %d should", len(rest), width))
	}
	return rest, nil
}

// other returns the error for a text with another prefix.
func (p Prefix) other(text string) error {
	at := strings.LastIndexByte(text, '_')
	if at < 0 {
		return firn.NewSyntaxError(p.what(), text, fmt.Sprintf("it has no prefix, %q is wanted", p.text))
	}
	found := text[:at]
	if len(found) > maxPrefix {
		found = found[:maxPrefix] + "…"
	}
	return firn.NewSyntaxError(p.what(), text, fmt.Sprintf("its prefix is %q, %q is wanted", found, p.text))
}

const idWidth = 13 // of firn.Base32

// ID returns the id after the prefix and an underscore, 13 characters of
// [firn.Base32]. As there, a negative id, which no generator makes, gives a
// text that nothing reads.
func (p Prefix) ID(id firn.ID) string {
	var buf [maxPrefix + 1 + idWidth]byte
	return string(p.AppendID(buf[:0], id))
}

// AppendID appends what ID returns to dst, and does not allocate when dst has room.
func (p Prefix) AppendID(dst []byte, id firn.ID) []byte {
	return firn.Base32.AppendFixed(append(append(dst, p.text...), '_'), id)
}

// ParseID reads what ID writes, its letters in either case, I and L as 1 and O
// as 0. The error is a *[firn.SyntaxError] that says what is wrong: another
// prefix, naming both, the length, or which character. ParseID allocates for
// errors only.
func (p Prefix) ParseID(text string) (firn.ID, error) {
	rest, err := p.cut(text, idWidth)
	if err != nil {
		return 0, err
	}
	id, err := firn.Base32.Parse(rest)
	if err != nil {
		var bad *firn.SyntaxError
		if errors.As(err, &bad) {
			err = firn.NewSyntaxError(p.what(), text, "behind the prefix "+bad.Reason)
		}
		return 0, err
	}
	return id, nil
}
