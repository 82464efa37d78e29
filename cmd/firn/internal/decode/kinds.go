package decode

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/serial"
)

// Any decodes an id of which nothing is known but a format, which may be empty: then by its form, see [Kind], and else as
// [Text].
func Any(text, format string, layout firn.Layout, s *serial.Format, now time.Time) (Contents, error) {
	if format == "" {
		c, rest, found, err := Kind(text, s)
		if err != nil || found {
			return c, err
		}
		text = rest
	}
	r, err := Text(text, format, layout, now)
	return r.Contents(""), err
}

// Kind decodes a text that by its form is not a 64-bit id: a UUID, an ObjectID, a serial of format s (nil: serials are
// not recognized), or one of these with a prefix. Of a 64-bit id with a prefix it returns the part after the prefix as
// rest. Found is false for any other text.
func Kind(text string, s *serial.Format) (t Contents, rest string, found bool, err error) {
	switch {
	case strings.Count(text, "-") == 4 && len(text) >= 36:
		t, err = UUID(text)
		return t, "", true, err
	case len(text) == 24 && isHex(text):
		t, err = ObjectID(text)
		return t, "", true, err
	case s != nil && len(text) > 20 && strings.Trim(text, "0123456789") == "" && strings.Trim(text, "01") != "":
		if t, err = Serial(text, s); err != nil {
			err = fmt.Errorf("%w (serials look like %v, as layout, width, zone, prefix and check say)", err, s)
		}
		return t, "", true, err
	case strings.Contains(text, "_"):
		return withPrefix(text)
	}
	if err := nearMiss(text); err != nil {
		return Contents{}, "", true, err
	}
	return Contents{}, text, false, nil
}

// nearMiss returns an error for hex digits with letters that are too many for 64 bits and almost as many as another
// kind has.
func nearMiss(text string) error {
	if strings.Trim(text, "0123456789") == "" || !isHex(text) || len(readings(text)) > 0 {
		return nil
	}
	switch n := len(text); {
	case n == 32:
		return firn.NewSyntaxError("UUID", text, "a UUID has dashes, 8-4-4-4-12: --kind uuid, or a namespace of that kind, reads it without")
	case n >= 20 && n <= 28:
		return firn.NewSyntaxError("object id", text, fmt.Sprintf("it has %d hex digits, 24 are wanted", n))
	default:
		return nil
	}
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdefABCDEF") == "" }

// UUID decodes a UUID.
func UUID(text string) (Contents, error) {
	id, err := uuid.Parse(text)
	// Parse takes the first and last of 38 characters for braces, whatever they are.
	if err != nil || len(text) == 38 && (text[0] != '{' || text[37] != '}') {
		return Contents{}, firn.NewSyntaxError("UUID", text, "32 hex digits in groups of 8-4-4-4-12 are wanted")
	}
	return uuidFields(id), nil
}

func uuidFields(id uuid.UUID) Contents {
	t := Contents{Kind: "uuid", Fields: []Field{{"id", id.String()}, {"version", int64(id.Version())}, {"variant", id.Variant().String()}}}
	switch id.Version() {
	case 1, 2, 6, 7:
		seconds, ns := id.Time().UnixTime()
		t.Fields = append(t.Fields, timeField(Shown(time.Unix(seconds, ns).UTC())))
	}
	return t
}

// ObjectID decodes an ObjectID.
func ObjectID(text string) (Contents, error) {
	id, err := objectid.Parse(text)
	if err != nil {
		return Contents{}, err
	}
	return objectIDFields(id), nil
}

func objectIDFields(id objectid.ID) Contents {
	p := id.Parts()
	machine, process := p.Unique[:3], binary.BigEndian.Uint16(p.Unique[3:])
	return Contents{Kind: "objectid", Fields: []Field{
		{"id", id.String()}, {"time", id.Time()}, {"unique", hex.EncodeToString(p.Unique[:])}, {"counter", int64(p.Counter)},
		// The same five bytes in the older format, with machine and process.
		{"machine", hex.EncodeToString(machine)}, {"process", int64(process)},
	}}
}

// Serial decodes a serial of format s.
func Serial(text string, s *serial.Format) (Contents, error) {
	p, err := s.Parts(text)
	if err != nil {
		return Contents{}, err
	}
	return Contents{Kind: "serial", Fields: []Field{
		{"id", p.ID}, {"time", p.Time}, {"tick", p.Tick},
		{"datacenter", p.Datacenter}, {"worker", p.Worker}, {"sequence", p.Sequence},
	}}, nil
}

// withPrefix decodes an id with a prefix. The width of the text after the prefix tells its kind.
func withPrefix(text string) (t Contents, rest string, found bool, err error) {
	p, rest, err := prefixed.Split(text)
	if err != nil {
		return Contents{}, text, false, upperCase(text)
	}
	switch len(rest) {
	case len(firn.Base32.Fixed(0)):
		id, err := p.ParseID(text)
		return Contents{}, id.String(), false, err
	case len(p.Bytes(make([]byte, 16))) - len(p.String()) - 1:
		b, err := p.ParseBytes(text, 16)
		if err != nil {
			return Contents{}, "", true, err
		}
		id := uuid.UUID(b)
		if known := id.Variant() == uuid.RFC4122 && 1 <= id.Version() && id.Version() <= 8; !known && id != uuid.Nil && id != uuid.Max {
			return Contents{}, "", true, firn.NewSyntaxError("id with a prefix", text, "16 bytes follow the prefix that are not those of a UUID")
		}
		return uuidFields(id).With(Prefix(p.String())), "", true, nil
	case len(p.Bytes(make([]byte, 12))) - len(p.String()) - 1:
		b, err := p.ParseBytes(text, 12)
		if err != nil {
			return Contents{}, "", true, err
		}
		return objectIDFields(objectid.ID(b)).With(Prefix(p.String())), "", true, nil
	}
	if len(text) == len(firn.Base64URL.Fixed(0)) && len(readings(text)) > 0 {
		return Contents{}, text, false, nil // an underscore may also be a digit of base64url
	}
	return Contents{}, "", true, firn.NewSyntaxError("id with a prefix", text,
		fmt.Sprintf("%d characters follow the prefix; 13 (64 bits), 20 (an ObjectID) or 26 (a UUID) are wanted", len(rest)))
}

// upperCase returns an error for an id whose prefix is valid except for its upper case, and nil for any other text.
func upperCase(text string) error {
	at := strings.LastIndexByte(text, '_')
	lower := strings.ToLower(text[:at]) + text[at:]
	_, rest, err := prefixed.Split(lower)
	if n := len(rest); err != nil || n != 13 && n != 20 && n != 26 {
		return nil //nolint:nilerr // it is no id in lower case either
	}
	return firn.NewSyntaxError("id with a prefix", text, "prefixes are in lower case, as "+lower)
}
