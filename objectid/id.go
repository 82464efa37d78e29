package objectid

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// An ID is a MongoDB ObjectID. Ids sort by time, bytewise and as text.
//
// In JSON, as text, in fmt, slog and database/sql it is 24 lower-case hexadecimal digits;
// in binary its twelve bytes, id[:]. An ID is a plain value: use it as a map key, compare
// it with ==.
type ID [12]byte

const (
	maxSecond  = 1<<32 - 1
	maxCounter = 1<<24 - 1
	width      = 24 // of the text
)

// Parse reads 24 hexadecimal digits of either case. The error is a *[firn.SyntaxError] that
// says what is wrong: the length, or a character and its position (in bytes, from 1). Parse
// allocates memory for errors only.
func Parse(text string) (ID, error) { return parse(text) }

// parse is generic so that bytes from JSON or a database need no copy.
func parse[T string | []byte](text T) (ID, error) {
	var id ID
	if len(text) != width {
		return ID{}, refuse(string(text))
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return ID{}, refuse(string(text))
	}
	return id, nil
}

// refuse returns the error for a text that parse cannot read.
func refuse(text string) error {
	const what = "object id"
	rest := strings.TrimLeft(text, "0123456789abcdefABCDEF")
	if rest != "" {
		return firn.NewSyntaxError(what, text, fmt.Sprintf("%s at position %d is not a hexadecimal digit", character(rest), len(text)-len(rest)+1))
	}
	if text == "" {
		return firn.NewSyntaxError(what, text, "it is empty")
	}
	return firn.NewSyntaxError(what, text, fmt.Sprintf("it has %d digits, an object id has %d", len(text), width))
}

// character names the first character of text.
func character(text string) string {
	if r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size > 1 {
		return fmt.Sprintf("%q", r)
	}
	return fmt.Sprintf("byte 0x%02x", text[0])
}

// String returns the 24 lower-case hexadecimal digits.
func (id ID) String() string {
	var text [width]byte
	hex.Encode(text[:], id[:])
	return string(text[:])
}

// Parts are the fields of an id.
type Parts struct {
	Seconds uint32  // since 1970-01-01, without leap seconds: until February 2106
	Unique  [5]byte // of the generator; historically its machine and process
	Counter uint32  // below 2^24
}

// compose returns the id at a position: seconds<<24 | counter, the number a
// generator counts.
func compose(position, unique uint64) (id ID) {
	binary.BigEndian.PutUint64(id[:8], position>>24<<32|unique>>8)
	binary.BigEndian.PutUint32(id[8:], uint32(unique<<24|position&maxCounter))
	return id
}

// join returns five bytes as a number.
func join(b [5]byte) uint64 {
	return uint64(b[0])<<32 | uint64(binary.BigEndian.Uint32(b[1:]))
}

// Parts returns the fields of the id.
func (id ID) Parts() Parts {
	return Parts{Seconds: id.seconds(), Unique: [5]byte(id[4:9]), Counter: binary.BigEndian.Uint32(id[8:]) & maxCounter}
}

func (id ID) seconds() uint32 { return binary.BigEndian.Uint32(id[:4]) }

// Time returns when the id was made, in UTC, in whole seconds.
func (id ID) Time() time.Time { return time.Unix(int64(id.seconds()), 0).UTC() }

// Span returns the smallest and the largest id with a time at or after from and before
// to, for queries by time:
//
//	{_id: {$gte: lo, $lte: hi}}
//
// Times outside 1970 to February 2106 are moved to these limits. The error is a
// *[firn.RangeError] if no second begins in between.
func Span(from, to time.Time) (lo, hi ID, err error) {
	first, last := max(begins(from), 0), min(begins(to)-1, maxSecond)
	if first > last {
		return ID{}, ID{}, &firn.RangeError{
			What: "span from " + stamp(from) + " to", Value: stamp(to), Min: "a second later", Max: stamp(end),
			Where: "no second of object ids begins in between",
		}
	}
	const all = 1<<40 - 1
	return compose(uint64(first)<<24, 0), compose(uint64(last)<<24|maxCounter, all), nil
}

// begins returns the first Unix second that begins at or after t.
func begins(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// end is the first moment that ids cannot express.
var end = time.Unix(maxSecond+1, 0)

// stamp returns the form in which errors write a time.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
