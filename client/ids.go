package client

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// A form is how an answer represents ids of a type.
type form[T firn.ID | string] struct {
	numbers bool
	read    func(line []byte) (T, error)
	// above returns how many ids may lie between from and a greater to.
	above func(from, to T) int64
}

const (
	maxDigits = 19  // of an id
	maxText   = 256 // bytes of an id that is a text
	maxLine   = maxText + 1
)

var numbers = form[firn.ID]{
	numbers: true,
	read: func(line []byte) (firn.ID, error) {
		n, err := strconv.ParseUint(string(line), 10, 63)
		if err == nil && len(line) <= maxDigits {
			return firn.ID(n), nil
		}
		if _, err := texts.read(line); err != nil { // no id at all
			return 0, err
		}
		return 0, fmt.Errorf("%w: the id %q is not a number of 63 bits; for ids that are texts use Client.Texts", ErrKind, shown(string(line)))
	},
	above: func(from, to firn.ID) int64 { return int64(to - from) },
}

var texts = form[string]{
	read: func(line []byte) (string, error) {
		if len(line) == 0 || len(line) > maxText {
			return "", fmt.Errorf("%w: an id of %d bytes, 1 to %d are allowed", errAnswer, len(line), maxText)
		}
		// A copy each: an id that is kept for long must not keep the others in memory.
		text := string(line)
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) { // as templates have
			return "", fmt.Errorf("%w: %q is not an id: ids are UTF-8 and have printable characters only", errAnswer, shown(text))
		}
		return text, nil
	},
	above: func(string, string) int64 { return 0 },
}

// fill reads an answer that must hold exactly as many ids as dst, one per line. An answer without the
// last line break has been cut off, perhaps within a number.
func (f form[T]) fill(dst []T, body []byte) error {
	for i := range dst {
		end := bytes.IndexByte(body, '\n')
		if end < 0 {
			return fmt.Errorf("%w: it ends after %d of the %d ids asked for", errAnswer, i, len(dst))
		}
		var err error
		if dst[i], err = f.read(body[:end]); err != nil {
			return err
		}
		body = body[end+1:]
	}
	if len(body) > 0 {
		return fmt.Errorf("%w: it goes on after the %d ids asked for", errAnswer, len(dst))
	}
	return nil
}
