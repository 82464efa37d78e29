package objectid

import (
	"database/sql/driver"
	"fmt"

	"github.com/firn-id/firn"
)

// Value implements [driver.Valuer]: the 24 digits, for a CHAR(24) column. For a
// BINARY(12) column, pass id[:].
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan implements [database/sql.Scanner]: it reads a column of 24 digits or of twelve
// bytes. It refuses NULL: scan a column that may be NULL into a sql.Null[objectid.ID]. The
// error is a *[firn.SyntaxError], and then id is unchanged.
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case string:
		return id.UnmarshalText([]byte(v))
	case []byte:
		if len(v) == len(id) {
			return id.UnmarshalBinary(v)
		}
		return id.UnmarshalText(v)
	case nil:
		return firn.NewSyntaxError("object id", "NULL", "scan a column that may be NULL into a sql.Null[objectid.ID]")
	default:
		return firn.NewSyntaxError("object id", fmt.Sprint(v), fmt.Sprintf("a column read as %T is neither text nor bytes", v))
	}
}
