package objectid_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
)

func mustParse(t testing.TB, text string) objectid.ID {
	t.Helper()
	id, err := objectid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestPublishedIDsDecodeToTheirPublishedParts(t *testing.T) {
	file, err := os.ReadFile("../testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var known struct {
		ObjectID []struct {
			Hex     string
			UnixS   int64 `json:"unix_s"`
			Time    string
			Machine string
			PID     string
			Counter *uint32
		}
	}
	if err := json.Unmarshal(file, &known); err != nil {
		t.Fatal(err)
	}
	if len(known.ObjectID) < 2 {
		t.Fatalf("testdata has only %d ids", len(known.ObjectID))
	}
	for _, k := range known.ObjectID {
		id := mustParse(t, k.Hex)
		if id.String() != k.Hex || id.Time().Unix() != k.UnixS {
			t.Errorf("%s is written %s, made at %d, want %d", k.Hex, id, id.Time().Unix(), k.UnixS)
		}
		if got := id.Time().Format(time.RFC3339); k.Time != "" && got != k.Time {
			t.Errorf("%s was made at %s, want %s", k.Hex, got, k.Time)
		}
		machine := [3]byte(id[4:7])
		if got := hex.EncodeToString(machine[:]); k.Machine != "" && got != k.Machine {
			t.Errorf("%s has machine %s, want %s", k.Hex, got, k.Machine)
		}
		if k.PID != "" {
			pid, err := strconv.ParseUint(k.PID, 16, 16)
			if err != nil || binary.BigEndian.Uint16(id[7:]) != uint16(pid) {
				t.Errorf("%s has process %04x, want %s, %v", k.Hex, binary.BigEndian.Uint16(id[7:]), k.PID, err)
			}
		}
		if k.Counter != nil && id.Parts().Counter != *k.Counter {
			t.Errorf("%s has counter %d, want %d", k.Hex, id.Parts().Counter, *k.Counter)
		}
	}
}

func TestTheFieldsHaveTheirWidths(t *testing.T) {
	want := objectid.Parts{Seconds: 1<<32 - 1, Unique: [5]byte{1, 2, 3, 4, 5}, Counter: 1<<24 - 1}
	if got := mustParse(t, "ffffffff0102030405ffffff").Parts(); got != want {
		t.Errorf("the last id has %+v, want %+v", got, want)
	}
}

func TestParseReadsBothCases(t *testing.T) {
	if lower, upper := mustParse(t, "507f191e810c19729de860ea"), mustParse(t, "507F191E810C19729DE860EA"); lower != upper {
		t.Errorf("%s and %s differ", lower, upper)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "it is empty",
		"507f191e810c19729de860e":     "it has 23 digits, an object id has 24",
		"507f191e810c19729de860ea0":   "it has 25 digits",
		"507f191e810c19729de860eg":    "'g' at position 24 is not a hexadecimal digit",
		"507f191e-810c-1972-9de860ea": "'-' at position 9",
		" 507f191e810c19729de860e":    "' ' at position 1",
		"507f191e810c19729de860é":     "'é' at position 23",
		"\xff":                        "byte 0xff at position 1",
		strings.Repeat("0", 5000):     "it has 5000 digits",
	} {
		id, err := objectid.Parse(text)
		if !errors.Is(err, firn.ErrSyntax) || id != (objectid.ID{}) || len(err.Error()) > 300 {
			t.Errorf("Parse(%.30q) = %s, %v, want ErrSyntax", text, id, err)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q in it", err, want)
		}
	}
}

func TestIDsSortByTimeThenUniqueThenCounter(t *testing.T) {
	var ids []objectid.ID
	for _, text := range []string{
		"000000000000000000000000", "0000000000000000000000ff", "000000000000000000000100", "0000000000000000ff000000",
		"00000001ffffffffffffffff", "7fffffff0000000000000000", "80000000ffffffffffffffff", "ffffffff0000000000000000",
	} {
		ids = append(ids, mustParse(t, text))
	}
	if !slices.IsSortedFunc(ids, func(a, b objectid.ID) int { return bytes.Compare(a[:], b[:]) }) {
		t.Error("the bytes are not sorted")
	}
	if !slices.IsSortedFunc(ids, func(a, b objectid.ID) int { return strings.Compare(a.String(), b.String()) }) {
		t.Error("the texts are not sorted")
	}
}

func TestSpanHoldsTheIDsOfItsSecondsOnly(t *testing.T) {
	at := func(s string) time.Time {
		tm, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return tm
	}
	for _, c := range []struct{ from, to, lo, hi string }{
		{"2012-10-17T20:46:22Z", "2012-10-17T20:46:23Z", "507f191e0000000000000000", "507f191effffffffffffffff"},
		{"2012-10-17T20:46:21.5Z", "2012-10-17T20:46:22.5Z", "507f191e0000000000000000", "507f191effffffffffffffff"},
		{"1950-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "000000000000000000000000", "ffffffffffffffffffffffff"},
		{"2106-02-07T06:28:15Z", "2106-02-07T06:28:16Z", "ffffffff0000000000000000", "ffffffffffffffffffffffff"},
	} {
		lo, hi, err := objectid.Span(at(c.from), at(c.to))
		if lo.String() != c.lo || hi.String() != c.hi || err != nil {
			t.Errorf("from %s to %s: %s to %s, %v, want %s to %s", c.from, c.to, lo, hi, err, c.lo, c.hi)
		}
	}
	for _, c := range [][2]string{
		{"2012-10-17T20:46:22Z", "2012-10-17T20:46:22Z"},
		{"2012-10-17T20:46:22.1Z", "2012-10-17T20:46:22.9Z"},
		{"2012-10-17T20:46:23Z", "2012-10-17T20:46:22Z"},
		{"1950-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"2106-02-07T06:28:16Z", "2300-01-01T00:00:00Z"},
	} {
		if lo, hi, err := objectid.Span(at(c[0]), at(c[1])); !errors.Is(err, firn.ErrRange) || lo != (objectid.ID{}) || hi != (objectid.ID{}) {
			t.Errorf("from %s to %s: %s to %s, %v, want ErrRange", c[0], c[1], lo, hi, err)
		}
	}
}
