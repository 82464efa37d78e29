package objectid

import (
	"fmt"
	"log/slog"
	"strings"
)

// Format implements [fmt.Formatter]: the 24 digits for %v, %s and %x, in upper
// case for %X, quoted for %q, and objectid.ID("…") for %#v. It supports fmt's widths.
func (id ID) Format(f fmt.State, verb rune) {
	text := id.String()
	switch verb {
	case 'x', 'X':
		if verb == 'X' {
			text = strings.ToUpper(text)
		}
		verb = 's'
	case 's', 'q':
	case 'v':
		if f.Flag('#') {
			fmt.Fprintf(f, "objectid.ID(%q)", text)
			return
		}
	default:
		fmt.Fprintf(f, "%%!%c(objectid.ID=%s)", verb, text)
		return
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), text)
}

// LogValue implements [slog.LogValuer]: the 24 digits.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }
