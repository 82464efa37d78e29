package firn

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// An ID is a 63-bit id: positive in a signed 64-bit integer, ordered as its
// numbers are. Ids with their time in front sort by time.
//
// As JSON it is a string, since JavaScript loses integers above 2^53; as text
// and in fmt and slog the decimal number; in database/sql a BIGINT.
type ID int64

// MaxID is the greatest id.
const MaxID ID = 1<<63 - 1

// ParseID reads a decimal id. Other encodings: [Encoding.Parse].
func ParseID(text string) (ID, error) { return Decimal.Parse(text) }

// String returns the decimal number.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Int64 returns the number.
func (id ID) Int64() int64 { return int64(id) }

// Bytes returns the eight bytes of the number, big-endian, which sort as the
// numbers do.
func (id ID) Bytes() [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return b
}

// IDFromBytes is the inverse of [ID.Bytes]; the error is a *[RangeError] for a
// number above 63 bits.
func IDFromBytes(b [8]byte) (ID, error) {
	return checkID(int64(binary.BigEndian.Uint64(b[:])))
}

func checkID(n int64) (ID, error) {
	if n < 0 {
		return 0, NewRangeError("id", n, 0, int64(MaxID), "63 bits")
	}
	return ID(n), nil
}

// Time returns when the id's tick began, as the layout has it. Like Tick,
// Datacenter, Worker and Sequence it returns the zero value for an id that the
// layout cannot have made; [Layout.Decompose] says why.
func (id ID) Time(l Layout) time.Time {
	p, err := l.Decompose(id)
	if err != nil {
		return time.Time{}
	}
	return l.Time(p.Tick)
}

// Tick returns the time field.
func (id ID) Tick(l Layout) Tick { return id.parts(l).Tick }

// Datacenter returns the datacenter field.
func (id ID) Datacenter(l Layout) int64 { return id.parts(l).Datacenter }

// Worker returns the worker field.
func (id ID) Worker(l Layout) int64 { return id.parts(l).Worker }

// Sequence returns the sequence field.
func (id ID) Sequence(l Layout) int64 { return id.parts(l).Sequence }

func (id ID) parts(l Layout) Parts {
	p, err := l.Decompose(id)
	if err != nil {
		return Parts{}
	}
	return p
}

// MarshalJSON returns the decimal number as a string.
func (id ID) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(`"9223372036854775807"`)+1)
	b = append(b, '"')
	b = strconv.AppendInt(b, int64(id), 10)
	return append(b, '"'), nil
}

// UnmarshalJSON reads a decimal id as a string or a number; null leaves id as
// it is, as encoding/json has it for all types. Errors match [ErrSyntax].
func (id *ID) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	digits := string(text)
	if bytes.HasPrefix(text, []byte{'"'}) {
		// Escapes are legal JSON even in digits; the usual text has none.
		if bytes.IndexByte(text, '\\') >= 0 {
			if err := json.Unmarshal(text, &digits); err != nil {
				return NewSyntaxError("id in JSON", string(text), err.Error())
			}
		} else if len(digits) >= 2 && digits[len(digits)-1] == '"' {
			digits = digits[1 : len(digits)-1]
		}
	}
	parsed, err := Decimal.Parse(digits)
	if err != nil {
		return NewSyntaxError("id in JSON", string(text),
			fmt.Sprintf("a whole number from 0 to %d is allowed, as a string or a number", int64(MaxID)))
	}
	*id = parsed
	return nil
}

// MarshalText returns the decimal number.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// AppendText appends the decimal number to b.
func (id ID) AppendText(b []byte) ([]byte, error) {
	return strconv.AppendInt(b, int64(id), 10), nil
}

// UnmarshalText reads what [ParseID] does; on an error id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Decimal.Parse(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// MarshalBinary returns [ID.Bytes].
func (id ID) MarshalBinary() ([]byte, error) {
	b := id.Bytes()
	return b[:], nil
}

// UnmarshalBinary reads eight bytes as [IDFromBytes] does.
func (id *ID) UnmarshalBinary(b []byte) error {
	if len(b) != 8 {
		return NewSyntaxError("binary id", fmt.Sprintf("%x", b), fmt.Sprintf("it has %d bytes, 8 make an id", len(b)))
	}
	parsed, err := IDFromBytes([8]byte(b))
	if err == nil {
		*id = parsed
	}
	return err
}

// Value implements [driver.Valuer]: the number, for a BIGINT column.
func (id ID) Value() (driver.Value, error) {
	if _, err := checkID(int64(id)); err != nil {
		return nil, err
	}
	return int64(id), nil
}

// Scan implements [database/sql.Scanner]: integers, and decimal text.
func (id *ID) Scan(src any) error {
	var (
		parsed ID
		err    error
	)
	switch v := src.(type) {
	case int64:
		parsed, err = checkID(v)
	case []byte:
		parsed, err = Decimal.Parse(string(v))
	case string:
		parsed, err = Decimal.Parse(v)
	case nil:
		err = NewSyntaxError("id", "NULL", "scan a column that may be NULL into a sql.Null[firn.ID]")
	default:
		err = NewSyntaxError("id", fmt.Sprint(v), fmt.Sprintf("a column of Go type %T is neither an integer nor text", v))
	}
	if err == nil {
		*id = parsed
	}
	return err
}

// Format implements [fmt.Formatter]: the decimal number for %v and %s, the
// number for %d, %b, %o, %x and %X, the quoted number for %q.
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

// LogValue implements [slog.LogValuer]: the decimal number as a string, so
// that JSON logs keep it exact.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }
