package firn

import "time"

// An ID is a 63-bit id: a non-negative int64. Since the time is its highest field, ids
// sort by time.
//
// In JSON it is a string, since JavaScript rounds integers above 2^53. As text, in fmt and
// in slog it is the decimal number, in database/sql a BIGINT, in binary eight big-endian
// bytes. For shorter text see [Encoding]. An ID is a plain value: use it as a map key,
// compare it with ==, convert it from and to int64.
type ID int64

// MaxID is the greatest id.
const MaxID ID = 1<<63 - 1

// ParseID reads a decimal id of at most 19 digits, leading zeros included. Errors are
// those of [Encoding.Parse], which reads other encodings.
func ParseID(text string) (ID, error) { return Decimal.Parse(text) }

// String returns the decimal number, as [Encoding.Compact] of [Decimal] does.
func (id ID) String() string { return Decimal.Compact(id) }

func checkID(n int64) (ID, error) {
	if n < 0 {
		return 0, NewRangeError("id", n, 0, int64(MaxID), "ids are not negative")
	}
	return ID(n), nil
}

// Time returns when the id's tick began under the layout, in UTC. It returns the zero time
// for an id that the layout cannot have made, and for the zero Layout. [Layout.Decompose]
// returns all parts, or an error that says what is wrong.
func (id ID) Time(l Layout) time.Time {
	p, err := l.Decompose(id)
	if err != nil || l == (Layout{}) {
		return time.Time{}
	}
	return l.Time(p.Tick)
}
