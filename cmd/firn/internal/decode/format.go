package decode

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// A Format is how ids are written.
type Format struct {
	Readable bool // and otherwise
	Encoding firn.Encoding
	Compact  bool // without leading zeros
}

const readableName = "readable"

// ParseFormat parses the name of an encoding, or readable. All encodings except decimal have a fixed width, unless :fixed
// or :compact says otherwise. What it accepts is read back in either width.
func ParseFormat(text string) (Format, error) { return parseFormat(text, "is "+readableName) }

// parseRead is ParseFormat for ids that are only read: an error names the foreign encodings too.
func parseRead(text string) (Format, error) {
	return parseFormat(text, "are "+strings.Join(append(Foreign(), readableName), ", "))
}

// parseFormat parses the name of a format. Others says which names are allowed beside the encodings.
func parseFormat(text, others string) (Format, error) {
	name, width, given := strings.Cut(text, ":")
	if name == readableName {
		if given {
			return Format{}, firn.NewSyntaxError("format", text, "readable has one width: leave out what follows it")
		}
		return Format{Readable: true}, nil
	}
	e, err := firn.ParseEncoding(name)
	if err != nil {
		return Format{}, fmt.Errorf("%w; so %s", err, others)
	}
	if given && width != "fixed" && width != "compact" {
		return Format{}, firn.NewSyntaxError("format", text, "after the colon, fixed and compact are allowed")
	}
	return Format{Encoding: e, Compact: width == "compact" || !given && e == firn.Decimal}, nil
}

// CheckFormat returns an error unless [Text] reads format.
func CheckFormat(format string) error {
	if format == "" || foreigns[format] != nil {
		return nil
	}
	_, err := parseRead(format)
	return err
}
