package applications_test

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// A Key is a primary key that cannot be inserted empty.
type Key struct{ firn.ID }

// Value implements driver.Valuer.
func (k Key) Value() (driver.Value, error) {
	if k.ID == 0 {
		return nil, errors.New("the primary key is empty: fill it before the insert")
	}
	return k.ID.Value()
}

// GormDataType makes gorm declare a BIGINT. For an integer it declares AUTOINCREMENT.
func (Key) GormDataType() string { return "bigint" }

func TestAKeyIsNeverInsertedEmpty(t *testing.T) {
	db := database(t)
	insert := `INSERT INTO orders (id, what) VALUES (?, 'x')`
	if _, err := db.ExecContext(t.Context(), insert, Key{}); err == nil || !strings.Contains(err.Error(), "primary key is empty") {
		t.Errorf("an empty key: %v", err)
	}
	stored(t, db, "orders", 0)
	id, err := generator(t).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), insert, Key{id}); err != nil {
		t.Fatal(err)
	}
	var read Key
	if err := db.QueryRowContext(t.Context(), `SELECT id FROM orders`).Scan(&read); err != nil || read.ID != id {
		t.Errorf("the column has %v (%v), want %v", read, err, id)
	}
	text, err := json.Marshal(read)
	if want := `"` + id.String() + `"`; err != nil || string(text) != want {
		t.Errorf("as JSON it is %s (%v), want %s", text, err, want)
	}
}
