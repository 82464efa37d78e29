package firn

import (
	"fmt"
	"log/slog"
)

// Format implements [fmt.Formatter]: the decimal number for %v, %s and %d, the
// number in its base for %b, %o, %O, %x and %X, the quoted decimal for %q, and
// firn.ID(7) for %#v. It supports fmt's flags, widths and precisions.
func (id ID) Format(f fmt.State, verb rune) {
	format := fmt.FormatString(f, verb)
	switch verb {
	case 'b', 'd', 'o', 'O', 'x', 'X':
		fmt.Fprintf(f, format, int64(id))
	case 's', 'q':
		fmt.Fprintf(f, format, id.String())
	case 'v':
		if f.Flag('#') {
			fmt.Fprintf(f, "firn.ID(%d)", int64(id))
			return
		}
		fmt.Fprintf(f, format, int64(id))
	default:
		fmt.Fprintf(f, "%%!%c(firn.ID=%d)", verb, int64(id))
	}
}

// LogValue implements [slog.LogValuer]: the decimal number as a string, so that
// readers of JSON logs do not round it.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }
