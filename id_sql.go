package firn

import (
	"database/sql/driver"
	"fmt"
)

// Value implements [driver.Valuer]: the number, for a BIGINT column. The error
// is a *[RangeError] for a negative id.
func (id ID) Value() (driver.Value, error) {
	if _, err := checkID(int64(id)); err != nil {
		return nil, err
	}
	return int64(id), nil
}

// Scan implements [database/sql.Scanner]: it reads an integer column or a column of
// decimal text. It refuses NULL: scan a column that may be NULL into a sql.Null[firn.ID].
// The error is a *[RangeError] for a negative number and a *[SyntaxError] for other text
// and types. On an error id is unchanged.
func (id *ID) Scan(src any) error {
	var (
		parsed ID
		err    error
	)
	switch v := src.(type) {
	case int64:
		parsed, err = checkID(v)
	case []byte:
		parsed, err = parse(Decimal, v)
	case string:
		parsed, err = Decimal.Parse(v)
	case nil:
		err = NewSyntaxError("id", "NULL", "scan a column that may be NULL into a sql.Null[firn.ID]")
	default:
		err = NewSyntaxError("id", fmt.Sprint(v), fmt.Sprintf("a column read as %T is neither an integer nor text", v))
	}
	if err == nil {
		*id = parsed
	}
	return err
}
