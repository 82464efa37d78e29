package objectid

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/firn-id/firn"
)

// MarshalJSON implements [json.Marshaler]: the 24 digits as a string.
func (id ID) MarshalJSON() ([]byte, error) {
	text := append(make([]byte, 0, width+2), '"')
	return append(hex.AppendEncode(text, id[:]), '"'), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads the digits as a string,
// and MongoDB's extended JSON, {"$oid": "…"}. Null leaves id unchanged, as is usual in
// encoding/json. For anything else the error is a *[firn.SyntaxError] and id is unchanged.
func (id *ID) UnmarshalJSON(text []byte) error {
	if n := len(text); n == width+2 && text[0] == '"' && text[n-1] == '"' {
		if parsed, err := parse(text[1 : n-1]); err == nil {
			*id = parsed
			return nil
		}
	}
	if string(text) == "null" {
		return nil
	}
	plain, err := plainJSON(text)
	if err == nil {
		err = id.UnmarshalText([]byte(plain))
	}
	if err != nil {
		reason := `24 hexadecimal digits in a string or in {"$oid": "…"} are allowed`
		var bad *firn.SyntaxError
		if errors.As(err, &bad) {
			reason = bad.Reason + "; " + reason
		}
		return firn.NewSyntaxError("object id in JSON", string(text), reason)
	}
	return nil
}

// plainJSON returns the JSON string in text, or the value of its only member $oid.
func plainJSON(text []byte) (plain string, err error) {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return plain, json.Unmarshal(text, &plain)
	}
	var object map[string]string // unlike a struct, it matches names exactly
	if err := json.Unmarshal(text, &object); err != nil {
		return "", err
	}
	plain, found := object["$oid"]
	if !found || len(object) != 1 {
		return "", errors.New("not $oid alone")
	}
	return plain, nil
}

// MarshalText implements [encoding.TextMarshaler], for map keys, XML, flags and
// YAML: the 24 digits.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// AppendText implements [encoding.TextAppender]: it appends the 24 digits to b,
// and does not allocate when b has room.
func (id ID) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, id[:]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It reads what [Parse] does, with the
// same errors. On an error id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := parse(text)
	if err == nil {
		*id = parsed
	}
	return err
}

// MarshalBinary implements [encoding.BinaryMarshaler], which encoding/gob uses: the twelve
// bytes.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]: it reads twelve
// bytes. For another length the error is a *[firn.SyntaxError] and id is unchanged.
func (id *ID) UnmarshalBinary(b []byte) error {
	if len(b) != len(id) {
		return firn.NewSyntaxError("binary object id", fmt.Sprintf("%x", b[:min(len(b), 64)]),
			fmt.Sprintf("it has %d bytes, an object id has %d", len(b), len(id)))
	}
	*id = ID(b)
	return nil
}
