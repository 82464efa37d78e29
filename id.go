package firn

import "time"

// An ID is a 63-bit id: positive in a signed 64-bit integer, ordered as its
// numbers are. Ids with their time in front sort by time.
//
// As JSON it is a string, since JavaScript loses integers above 2^53; as text
// and in fmt and slog the decimal number; in database/sql a BIGINT; as binary
// eight big-endian bytes. For shorter text see [Encoding]. An ID is a plain
// value: use it as a map key, compare it with ==, convert it from and to int64.
type ID int64

// MaxID is the greatest id.
const MaxID ID = 1<<63 - 1

// ParseID reads a decimal id, with leading zeros up to 19 digits. Errors are
// those of [Encoding.Parse], which reads the other encodings.
func ParseID(text string) (ID, error) { return Decimal.Parse(text) }

// String returns the decimal number, as [Encoding.Compact] of [Decimal] does.
func (id ID) String() string { return Decimal.Compact(id) }

func checkID(n int64) (ID, error) {
	if n < 0 {
		return 0, NewRangeError("id", n, 0, int64(MaxID), "ids have 63 bits and no sign")
	}
	return ID(n), nil
}

// Time returns when the id's tick began, in UTC, as the layout has it: the zero time for an id
// that the layout cannot have made, and for the zero Layout. [Layout.Decompose] returns all
// parts, and says why it cannot.
func (id ID) Time(l Layout) time.Time {
	p, err := l.Decompose(id)
	if err != nil || l == (Layout{}) {
		return time.Time{}
	}
	return l.Time(p.Tick)
}
