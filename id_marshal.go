package firn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// MarshalJSON implements [json.Marshaler]: the decimal number as a string.
func (id ID) MarshalJSON() ([]byte, error) {
	text := make([]byte, 0, len(`"9223372036854775807"`))
	var buf form
	i := Decimal.write(&buf, id)
	if i < 0 {
		return append(strconv.AppendInt(append(text, '"'), int64(id), 10), '"'), nil
	}
	i = Decimal.significant(&buf, i) - 1
	buf[i] = '"'
	return append(append(text, buf[i:]...), '"'), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads a decimal id as a string or as a
// whole number. Null leaves id unchanged, as is usual in encoding/json. For anything else
// (a fraction, an exponent, a sign, a number above [MaxID], true, an object) the error is a
// *[SyntaxError] and id is unchanged.
func (id *ID) UnmarshalJSON(text []byte) error {
	digits := text
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		digits = text[1 : n-1]
	} else if string(text) == "null" {
		return nil
	}
	parsed, err := parse(Decimal, digits)
	if err != nil && bytes.IndexByte(text, '\\') >= 0 {
		// A digit in a JSON string may be written as an escape, such as \u0031.
		var plain string
		if json.Unmarshal(text, &plain) == nil {
			parsed, err = Decimal.Parse(plain)
		}
	}
	if err != nil {
		return jsonError(text, err)
	}
	*id = parsed
	return nil
}

// jsonError returns err with the JSON text and what JSON is allowed.
func jsonError(text []byte, err error) error {
	reason := fmt.Sprintf("a whole number from 0 to %d is allowed, as a string or a number", int64(MaxID))
	var bad *SyntaxError
	switch {
	case len(text) == 0:
	case text[0] != '"' && bytes.ContainsAny(text, ".eE") && bytes.ContainsAny(text[:1], "-0123456789"):
		reason = "it has a fraction or an exponent; " + reason
	case bytes.ContainsAny(text[:1], `"-0123456789`) && errors.As(err, &bad):
		reason = bad.Reason + "; " + reason
	}
	return NewSyntaxError("id in JSON", string(text), reason)
}

// MarshalText implements [encoding.TextMarshaler], for map keys, XML, flags and
// YAML: the decimal number.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// AppendText implements [encoding.TextAppender]: it appends the decimal number
// to b, and does not allocate when b has room.
func (id ID) AppendText(b []byte) ([]byte, error) { return Decimal.AppendCompact(b, id), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It reads what [ParseID] does, with
// the same errors. On an error id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := parse(Decimal, text)
	if err == nil {
		*id = parsed
	}
	return err
}

// MarshalBinary implements [encoding.BinaryMarshaler], which encoding/gob uses: eight
// big-endian bytes, which sort as the numbers do.
func (id ID) MarshalBinary() ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(id)), nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]: it reads eight bytes. The error
// is a *[SyntaxError] for another length and a *[RangeError] for a negative number. On an
// error id is unchanged.
func (id *ID) UnmarshalBinary(b []byte) error {
	if len(b) != 8 {
		return NewSyntaxError("binary id", fmt.Sprintf("%x", b[:min(len(b), maxQuoted)]),
			fmt.Sprintf("it has %d bytes, an id has 8", len(b)))
	}
	parsed, err := checkID(int64(binary.BigEndian.Uint64(b)))
	if err == nil {
		*id = parsed
	}
	return err
}
