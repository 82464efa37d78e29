package prefixed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// A Prefix names the kind of ids. It is a small comparable value whose methods may be
// called concurrently. The zero Prefix is not valid: it writes texts that begin with an
// underscore, which no Prefix reads, and its Parse methods fail.
type Prefix struct{ text string }

const maxPrefix = 63

// New returns a prefix with 1 to 63 characters of a-z, 0-9 and underscore, which neither
// begins nor ends with an underscore. TypeID allows the same, but no digits. The error is a
// *[firn.SyntaxError].
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
			return refuse("it may not begin or end with an underscore")
		default:
			return refuse("%s at position %d is not allowed: use a-z, 0-9 and _", character(text[at:]), at+1)
		}
	}
	return Prefix{text}, nil
}

// String returns the text of the prefix, without the underscore that follows it in ids.
func (p Prefix) String() string { return p.text }

// Split splits a text at its last underscore, for programs that receive ids of many kinds.
// To read the rest, use [firn.Base32]; to read the whole text, use [Prefix.ParseID] or
// [Prefix.ParseBytes]. The error is a *[firn.SyntaxError] if there is no underscore, or
// the error of New.
func Split(text string) (p Prefix, rest string, err error) {
	at := strings.LastIndexByte(text, '_')
	if at < 0 {
		return Prefix{}, "", firn.NewSyntaxError(plain, text, "it has no prefix such as ord in ord_1786KEMYM8400")
	}
	if p, err = New(text[:at]); err != nil {
		return Prefix{}, "", err
	}
	return p, text[at+1:], nil
}

const plain = "id with a prefix"

// what is what errors call the expected text.
func (p Prefix) what() string { return "id with the prefix " + p.text }

// cut returns the text after the prefix, which must have the given width.
func (p Prefix) cut(text string, width int) (string, error) {
	if p.text == "" {
		return "", firn.NewSyntaxError(plain, text, "the zero Prefix reads nothing: get a Prefix from New")
	}
	rest, found := strings.CutPrefix(text, p.text)
	if !found || rest == "" || strings.LastIndexByte(rest, '_') != 0 { // the prefix ends at the last underscore
		return "", p.other(text)
	}
	rest = rest[1:]
	if len(rest) != width {
		return "", firn.NewSyntaxError(p.what(), text, fmt.Sprintf("%d characters follow the prefix, expected %d", len(rest), width))
	}
	return rest, nil
}

// other returns the error for a text with another prefix.
func (p Prefix) other(text string) error {
	at := strings.LastIndexByte(text, '_')
	if at < 0 {
		return firn.NewSyntaxError(p.what(), text, fmt.Sprintf("it has no prefix, expected %q", p.text))
	}
	found := text[:at]
	if len(found) > maxPrefix {
		found = found[:maxPrefix] + "…"
	}
	return firn.NewSyntaxError(p.what(), text, fmt.Sprintf("its prefix is %q, expected %q", found, p.text))
}

const idWidth = 13 // of firn.Base32

// ID returns the prefix, an underscore and the id in 13 characters of [firn.Base32]. A
// negative id, which no generator makes, gives a text that ParseID refuses.
func (p Prefix) ID(id firn.ID) string {
	var buf [maxPrefix + 1 + idWidth]byte
	return string(p.appendID(buf[:0], id))
}

func (p Prefix) appendID(dst []byte, id firn.ID) []byte {
	return firn.Base32.AppendFixed(append(append(dst, p.text...), '_'), id)
}

// ParseID reads a text that ID wrote. It accepts either case, I and L as 1 and O as 0. The
// error is a *[firn.SyntaxError] that says what is wrong: another prefix, the length, or a
// character. ParseID allocates memory for errors only.
func (p Prefix) ParseID(text string) (firn.ID, error) {
	rest, err := p.cut(text, idWidth)
	if err != nil {
		return 0, err
	}
	id, err := firn.Base32.Parse(rest)
	if err != nil {
		var bad *firn.SyntaxError
		if errors.As(err, &bad) {
			err = firn.NewSyntaxError(p.what(), text, "after the prefix, "+bad.Reason)
		}
		return 0, err
	}
	return id, nil
}
