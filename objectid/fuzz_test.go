package objectid_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
)

// seeds are texts at the limits of what Parse reads.
var seeds = []string{
	"", "0", "507f191e810c19729de860ea", "5C4A7FCC0ED0240001A79289", "507f191e810c19729de860e", "507f191e810c19729de860ea0",
	"507f191e810c19729de860eg", "000000000000000000000000", "ffffffffffffffffffffffff", "507f191e810c19729de860é", "\xff\x00",
}

func FuzzParse(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, wantErr := hex.DecodeString(text)
		ok := wantErr == nil && len(want) == 12
		id, err := objectid.Parse(text)
		switch {
		case ok != (err == nil):
			t.Fatalf("Parse(%q) = %s, %v", text, id, err)
		case ok && (id != objectid.ID(want) || id.String() != strings.ToLower(text)):
			t.Fatalf("Parse(%q) = %s", text, id)
		case !ok && (id != (objectid.ID{}) || !errors.Is(err, firn.ErrSyntax) || len(err.Error()) > 1000):
			t.Fatalf("Parse(%q) = %s, %v", text, id, err)
		}
	})
}

func FuzzUnmarshalJSON(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(`"` + text + `"`))
		f.Add([]byte(`{"$oid":"` + text + `"}`))
	}
	for _, text := range []string{"null", "1", "{", `{"$oid":null}`, `{"$oid":"a","$oid":"507f191e810c19729de860ea"}`, `"\u0035"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := objectid.ID{1, 2, 3}
		id := before
		if err := id.UnmarshalJSON(text); err != nil {
			if id != before || !errors.Is(err, firn.ErrSyntax) {
				t.Fatalf("UnmarshalJSON(%q) = %s, %v", text, id, err)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatalf("UnmarshalJSON(%q) = %s, though it is no JSON", text, id)
		}
		out, err := json.Marshal(id)
		if err != nil || string(out) != `"`+id.String()+`"` {
			t.Fatalf("%s is written %s, %v", id, out, err)
		}
	})
}
