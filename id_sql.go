package firn

import (
	"database/sql/driver"
	"fmt"
	"reflect"
)

// Value implements [driver.Valuer]: the number, for a BIGINT column. The error
// is a *[RangeError] for a negative id.
func (id ID) Value() (driver.Value, error) {
	if _, err := checkID(int64(id)); err != nil {
		return nil, err
	}
	return int64(id), nil
}

// Scan implements [database/sql.Scanner]: it reads an integer column, signed or not, or a
// column of decimal text. It refuses NULL: scan a column that may be NULL into a
// sql.Null[firn.ID]. The error is a *[RangeError] for a negative number and for one above
// [MaxID], and a *[SyntaxError] for other text and types. On an error id is unchanged.
func (id *ID) Scan(src any) error {
	var (
		parsed ID
		err    error
	)
	switch v := src.(type) {
	case []byte:
		parsed, err = parse(Decimal, v)
	case string:
		parsed, err = Decimal.Parse(v)
	case nil:
		err = NewSyntaxError("id", "NULL", "scan a column that may be NULL into a sql.Null[firn.ID]")
	default: // drivers give more than database/sql/driver lists: for BIGINT UNSIGNED that of MySQL gives a uint64
		switch n := reflect.ValueOf(v); {
		case n.CanInt():
			parsed, err = checkID(n.Int())
		case n.CanUint() && n.Uint() > uint64(MaxID):
			err = &RangeError{What: "id", Value: fmt.Sprint(v), Min: "0", Max: fmt.Sprint(int64(MaxID))}
		case n.CanUint():
			parsed = ID(n.Uint())
		default:
			err = NewSyntaxError("id", fmt.Sprint(v), fmt.Sprintf("a column read as %T is neither an integer nor text", v))
		}
	}
	if err == nil {
		*id = parsed
	}
	return err
}
