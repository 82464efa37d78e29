package firn

import (
	"database/sql/driver"
	"fmt"
)

// Value implements [driver.Valuer]: the number, for a BIGINT column. The error
// is a *[RangeError] for a negative id, which a database should never see.
func (id ID) Value() (driver.Value, error) {
	if _, err := checkID(int64(id)); err != nil {
		return nil, err
	}
	return int64(id), nil
}

// Scan implements [database/sql.Scanner]: it reads an integer column, or one
// of decimal text. A NULL is refused: scan a column that may hold one into a
// sql.Null[firn.ID]. Errors are a *[RangeError] for a negative number and a
// *[SyntaxError] for text and types that are no id; id is unchanged then.
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
