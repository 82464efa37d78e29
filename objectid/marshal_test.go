package objectid_test

import (
	"bytes"
	"database/sql"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
)

const known = "507f191e810c19729de860ea"

func TestJSONIsAStringAndMapKey(t *testing.T) {
	id := mustParse(t, known)
	text, err := json.Marshal(map[objectid.ID]any{id: []any{id, &id}})
	if want := `{"` + known + `":["` + known + `","` + known + `"]}`; string(text) != want || err != nil {
		t.Errorf("JSON is %s, %v, want %s", text, err, want)
	}
}

func TestJSONIsReadFromAStringOrExtendedJSON(t *testing.T) {
	for _, text := range []string{
		`"` + known + `"`, `"` + strings.ToUpper(known) + `"`, ` {"$oid" : "` + known + `"} `, `"\u0035` + known[1:] + `"`,
	} {
		var id objectid.ID
		if err := json.Unmarshal([]byte(text), &id); id.String() != known || err != nil {
			t.Errorf("%s is read as %s, %v", text, id, err)
		}
	}
	id := mustParse(t, known)
	if err := json.Unmarshal([]byte("null"), &id); id.String() != known || err != nil {
		t.Errorf("null makes it %s, %v", id, err)
	}
}

func TestOtherJSONIsRefused(t *testing.T) {
	for _, text := range []string{
		`""`, `1`, `true`, `["` + known + `"]`, `{}`, `{"$oid":1}`, `{"$OID":"` + known + `"}`, `{"$oid":"` + known + `","a":"b"}`,
		`{"$oid":"` + known[1:] + `"}`, `"` + known[1:] + `g"`, `"`, `{`, ``,
	} {
		id := mustParse(t, known)
		if err := id.UnmarshalJSON([]byte(text)); !errors.Is(err, firn.ErrSyntax) || id.String() != known {
			t.Errorf("%s is read as %s, %v, want ErrSyntax", text, id, err)
		}
	}
	var id objectid.ID
	err := json.Unmarshal([]byte(`"507f191e810c19729de860eg"`), &id)
	if err == nil || !strings.Contains(err.Error(), "'g' at position 24 is not a hexadecimal digit; 24 hexadecimal digits in a string") {
		t.Errorf("the error is %v", err)
	}
}

func TestBinaryIsTheTwelveBytes(t *testing.T) {
	id := mustParse(t, known)
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(id); err != nil {
		t.Fatal(err)
	}
	var got objectid.ID
	if err := gob.NewDecoder(&buf).Decode(&got); got != id || err != nil {
		t.Errorf("gob gives %s, %v", got, err)
	}
	for _, n := range []int{0, 11, 13, 5000} {
		if err := got.UnmarshalBinary(make([]byte, n)); !errors.Is(err, firn.ErrSyntax) || got != id {
			t.Errorf("%d bytes are read as %s, %v, want ErrSyntax", n, got, err)
		}
	}
}

func TestSQLIsTextAndReadsTextAndBytes(t *testing.T) {
	id := mustParse(t, known)
	if v, err := id.Value(); v != known || err != nil {
		t.Errorf("the value is %v, %v", v, err)
	}
	for _, src := range []any{known, []byte(known), id[:]} {
		var got sql.Null[objectid.ID]
		if err := got.Scan(src); got.V != id || !got.Valid || err != nil {
			t.Errorf("%T %[1]v is scanned as %v, %v", src, got, err)
		}
	}
	for _, src := range []any{nil, 7, int64(7), "", known[1:], []byte{}, make([]byte, 13), 1.5} {
		got := id
		if err := got.Scan(src); !errors.Is(err, firn.ErrSyntax) || got != id {
			t.Errorf("%T %[1]v is scanned as %s, %v, want ErrSyntax", src, got, err)
		}
	}
	if err := id.Scan(nil); !strings.Contains(err.Error(), "sql.Null[objectid.ID]") {
		t.Errorf("the error for NULL is %v", err)
	}
}

func TestFmtAndSlogShowTheDigits(t *testing.T) {
	id := mustParse(t, known)
	for format, want := range map[string]string{
		"%v": known, "%s": known, "%x": known, "%X": strings.ToUpper(known), "%q": `"` + known + `"`, "%28v|": "    " + known + "|",
		"%-28s|": known + "    |", "%#v": `objectid.ID("` + known + `")`, "%d": "%!d(objectid.ID=" + known + ")",
	} {
		if got := fmt.Sprintf(format, id); got != want {
			t.Errorf("%s gives %s, want %s", format, got, want)
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "id", id)
	if !strings.Contains(log.String(), "id="+known) {
		t.Errorf("the log has %s", &log)
	}
}

func TestAppendTextDoesNotAllocateIfThereIsRoom(t *testing.T) {
	id, b := mustParse(t, known), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		b, _ = id.AppendText(b[:0])
		id, _ = objectid.Parse(known)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
