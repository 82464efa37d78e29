package decode

import (
	"errors"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// A Format is how ids are written.
type Format struct {
	Readable bool // and otherwise
	Encoding firn.Encoding
	Compact  bool // without leading zeros
}

const readableName = "readable"

// Encodings returns the names of the encodings, in their order.
func Encodings() (names []string) {
	for e := firn.Decimal; e <= firn.Base2; e++ {
		names = append(names, e.String())
	}
	return names
}

// ParseFormat parses the name of an encoding, or readable. All encodings except decimal have a fixed width, unless :fixed
// or :compact says otherwise. Names are case-insensitive. What it accepts is read back in either width.
func ParseFormat(text string) (Format, error) { return parseFormat(text, readableName) }

// parseRead is ParseFormat for ids that are only read: an error names the foreign encodings too.
func parseRead(text string) (Format, error) {
	return parseFormat(text, append(Foreign(), readableName)...)
}

// parseFormat parses the name of a format. Others are the names that are allowed beside the encodings.
func parseFormat(text string, others ...string) (Format, error) {
	name, width, given := strings.Cut(strings.ToLower(text), ":")
	if name == readableName {
		if given {
			return Format{}, firn.NewSyntaxError("format", text, "readable has one width: leave out what follows it")
		}
		return Format{Readable: true}, nil
	}
	e, err := ParseEncoding(name, others...)
	if err != nil {
		return Format{}, err
	}
	if given && width != "fixed" && width != "compact" {
		return Format{}, firn.NewSyntaxError("format", text, "after the colon, fixed and compact are allowed")
	}
	return Format{Encoding: e, Compact: width == "compact" || !given && e == firn.Decimal}, nil
}

// ParseEncoding parses the name of an encoding, in any case. Its error also names the others, which the caller reads itself.
func ParseEncoding(name string, others ...string) (firn.Encoding, error) {
	e, err := firn.ParseEncoding(strings.ToLower(name))
	wrong, ok := errors.AsType[*firn.SyntaxError](err)
	if !ok {
		return e, err
	}
	const allowed = " are allowed"
	names := append(strings.Split(strings.TrimSuffix(wrong.Reason, allowed), ", "), others...)
	return e, firn.NewSyntaxError("encoding", name, strings.Join(names, ", ")+allowed+failure.DidYouMean(name, names))
}

// parseAs parses a text in a format that has a name, with readable for readable ones. Encoding is that of the text.
func parseAs(text, format string, readable func(text string) (firn.ID, error)) (id firn.ID, encoding string, err error) {
	format = strings.ToLower(format)
	if parse := foreigns[format]; parse != nil {
		id, err = parse(text)
		return id, format, err
	}
	f, err := parseRead(format)
	switch {
	case err != nil:
		return 0, "", err
	case f.Readable:
		id, err = readable(text)
		return id, readableName, err
	}
	id, err = f.Encoding.Parse(text)
	return id, f.Encoding.String(), err
}

// CheckFormat returns an error unless [Text] reads format.
func CheckFormat(format string) error {
	if format == "" || foreigns[strings.ToLower(format)] != nil {
		return nil
	}
	_, err := parseRead(format)
	return err
}

// Append appends an id in the format. Only a readable one needs the layout.
func (f Format) Append(to []byte, layout firn.Layout, id firn.ID) ([]byte, error) {
	switch {
	case f.Readable:
		text, err := layout.Readable(id)
		return append(to, text...), err
	case f.Compact:
		return f.Encoding.AppendCompact(to, id), nil
	default:
		return f.Encoding.AppendFixed(to, id), nil
	}
}
