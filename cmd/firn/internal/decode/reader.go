package decode

import (
	"fmt"

	"github.com/firn-id/firn"
)

// A Reader reads back the ids of one namespace, and refuses ids of other forms.
type Reader struct {
	Makes string // the ids that the namespace makes, for errors
	// Read decodes an id. Format is the encoding of a number, or empty.
	Read func(text, format string) (Contents, error)
}

// Number parses a number that has no readable time in it, so that nothing tells its encoding: it is decimal unless
// format says otherwise.
func Number(text, format string) (firn.ID, error) {
	if format != "" {
		id, _, err := parseAs(text, format, func(string) (firn.ID, error) {
			return 0, firn.NewSyntaxError("format", format, "the id has no time in it that could be read")
		})
		return id, err
	}
	id, err := firn.Decimal.Parse(text)
	if err != nil && !negative(text) {
		if others := readings(text); len(others) > 0 {
			err = fmt.Errorf("%w; another encoding is read if it is named, such as format %s", err, others[0].Encoding)
		}
	}
	return id, err
}
