package firn

import (
	"encoding/binary"
	"time"
)

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

// Int64 returns the number.
func (id ID) Int64() int64 { return int64(id) }

// Bytes returns the eight bytes of the number, big-endian, which sort as the
// numbers do.
func (id ID) Bytes() [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return b
}

// IDFromBytes is the inverse of [ID.Bytes]. The error is a *[RangeError] for
// bytes with the highest bit set, which are no id.
func IDFromBytes(b [8]byte) (ID, error) {
	return checkID(int64(binary.BigEndian.Uint64(b[:])))
}

func checkID(n int64) (ID, error) {
	if n < 0 {
		return 0, NewRangeError("id", n, 0, int64(MaxID), "ids have 63 bits and no sign")
	}
	return ID(n), nil
}

// Time returns when the id's tick began, in UTC, as the layout has it. Like
// Tick, Datacenter, Worker and Sequence it returns the zero value for an id that the
// layout cannot have made, and for the zero Layout; [Layout.Decompose] says
// why, and takes an id apart in one go.
func (id ID) Time(l Layout) time.Time {
	p, err := l.Decompose(id)
	if err != nil || l.IsZero() {
		return time.Time{}
	}
	return l.Time(p.Tick)
}

// Tick returns the time field: units since the layout's epoch. See Time for
// ids of another layout.
func (id ID) Tick(l Layout) Tick { return id.parts(l).Tick }

// Datacenter returns the datacenter field, 0 if the layout has no such field. See
// Time for ids of another layout.
func (id ID) Datacenter(l Layout) int64 { return id.parts(l).Datacenter }

// Worker returns the worker field, 0 if the layout has no such field. See Time for
// ids of another layout.
func (id ID) Worker(l Layout) int64 { return id.parts(l).Worker }

// Sequence returns the sequence field, the counter within the tick. See Time
// for ids of another layout.
func (id ID) Sequence(l Layout) int64 { return id.parts(l).Sequence }

// parts is Decompose with zero parts for its error.
func (id ID) parts(l Layout) Parts {
	p, err := l.Decompose(id)
	if err != nil {
		return Parts{}
	}
	return p
}
