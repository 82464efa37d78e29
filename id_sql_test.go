package firn_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

var (
	_ driver.Valuer = firn.ID(0)
	_ sql.Scanner   = (*firn.ID)(nil)
)

func TestIDIsAnIntegerToDatabases(t *testing.T) {
	for _, id := range []firn.ID{0, 1, 1414362783486840832, firn.MaxID} {
		value, err := driver.DefaultParameterConverter.ConvertValue(id)
		if value != int64(id) || err != nil {
			t.Errorf("the value of %d is %v (%[2]T), %v", id, value, err)
		}
		var got firn.ID
		if err := got.Scan(value); got != id || err != nil {
			t.Errorf("scanned, %d is %d, %v", id, got, err)
		}
	}
	value, err := firn.ID(-5).Value()
	if value != nil || !errors.Is(err, firn.ErrRange) {
		t.Errorf("the value of -5 is %v, %v, want ErrRange", value, err)
	}
}

func TestIDScansIntegersAndDecimalText(t *testing.T) {
	for _, src := range []any{
		int64(7), "7", []byte("7"), "0000000000000000007",
		int(7), int8(7), int16(7), int32(7), uint(7), uint8(7), uint16(7), uint32(7), uint64(7),
	} {
		var id firn.ID
		if err := id.Scan(src); id != 7 || err != nil {
			t.Errorf("Scan(%T %[1]v) = %d, %v, want 7", src, id, err)
		}
	}
	var id firn.ID
	if err := id.Scan(uint64(firn.MaxID)); id != firn.MaxID || err != nil {
		t.Errorf("the greatest id of an unsigned column is %d, %v", id, err)
	}
}

func TestIDRefusesOtherColumns(t *testing.T) {
	for _, c := range []struct {
		claim    string
		src      any
		sentinel error
		want     string
	}{
		{"NULL points to sql.Null", nil, firn.ErrSyntax, "sql.Null[firn.ID]"},
		{"a negative integer", int64(-5), firn.ErrRange, "id -5 is out of range: 0 to 9223372036854775807 are allowed"},
		{"a negative int", -5, firn.ErrRange, "ids are not negative"},
		{"an unsigned integer above all ids", uint64(firn.MaxID) + 1, firn.ErrRange, "id 9223372036854775808 is out of range: 0 to 9223372036854775807 are allowed"},
		{"negative text", "-5", firn.ErrSyntax, "ids are not negative"},
		{"negative bytes", []byte("-5"), firn.ErrSyntax, "ids are not negative"},
		{"text that is no number", "ab", firn.ErrSyntax, "'a' at position 1"},
		{"empty bytes", []byte{}, firn.ErrSyntax, "it is empty"},
		{"bytes that are not text", []byte{0, 1, 2, 3, 4, 5, 6, 7}, firn.ErrSyntax, `'\x00' at position 1`},
		{"a decimal column", "7.0", firn.ErrSyntax, "'.' at position 2"},
		{"a float", 7.5, firn.ErrSyntax, "float64"},
		{"a boolean", true, firn.ErrSyntax, "bool"},
		{"a time", time.Unix(7, 0), firn.ErrSyntax, "time.Time"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			id := firn.ID(42)
			err := id.Scan(c.src)
			if id != 42 || !errors.Is(err, c.sentinel) {
				t.Fatalf("Scan(%v) = %d, %v, want 42 left as it was and %v", c.src, id, err, c.sentinel)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestIDThatMayBeNULLIsASQLNull(t *testing.T) {
	var id sql.Null[firn.ID]
	if err := id.Scan(nil); id.Valid || err != nil {
		t.Errorf("NULL scans as %v, %v", id, err)
	}
	if err := id.Scan(int64(7)); !id.Valid || id.V != 7 || err != nil {
		t.Errorf("7 scans as %v, %v", id, err)
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(id)
	if value != int64(7) || err != nil {
		t.Errorf("its value is %v (%[1]T), %v", value, err)
	}
}
