package firn_test

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

var (
	_ json.Marshaler             = firn.ID(0)
	_ json.Unmarshaler           = (*firn.ID)(nil)
	_ encoding.TextMarshaler     = firn.ID(0)
	_ encoding.TextAppender      = firn.ID(0)
	_ encoding.TextUnmarshaler   = (*firn.ID)(nil)
	_ encoding.BinaryMarshaler   = firn.ID(0)
	_ encoding.BinaryUnmarshaler = (*firn.ID)(nil)
)

func TestIDIsAStringInJSON(t *testing.T) {
	for _, id := range append(sampleIDs(t), -5) {
		want := `"` + id.String() + `"`
		text, err := json.Marshal(id)
		if string(text) != want || err != nil {
			t.Fatalf("json.Marshal of %d = %s, %v, want %s", id, text, err, want)
		}
		var got firn.ID
		if err := json.Unmarshal(text, &got); id >= 0 && (got != id || err != nil) {
			t.Fatalf("json.Unmarshal(%s) = %d, %v", text, got, err)
		}
	}
}

func TestIDReadsJSON(t *testing.T) {
	const untouched = firn.ID(42)
	for _, c := range []struct {
		claim string
		text  string
		want  firn.ID
	}{
		{"a string", `"1414362783486840832"`, 1414362783486840832},
		{"a number", `1414362783486840832`, 1414362783486840832},
		{"zero", `0`, 0},
		{"the greatest number", `9223372036854775807`, firn.MaxID},
		{"the greatest string", `"9223372036854775807"`, firn.MaxID},
		{"leading zeros in a string", `"007"`, 7},
		{"escaped digits", `"\u0031\u0032"`, 12},
		{"space around it", " \n7\t", 7},
		{"null leaves it as it is", `null`, untouched},
	} {
		t.Run(c.claim, func(t *testing.T) {
			id := untouched
			if err := json.Unmarshal([]byte(c.text), &id); id != c.want || err != nil {
				t.Errorf("json.Unmarshal(%s) = %d, %v, want %d", c.text, id, err, c.want)
			}
		})
	}
}

func TestIDRefusesOtherJSONAndSaysWhatIsAllowed(t *testing.T) {
	const allowed = "a whole number from 0 to 9223372036854775807 is allowed, as a string or a number"
	for _, c := range []struct {
		claim string
		text  string
		want  string
	}{
		{"a fraction", `1.5`, "it has a fraction or an exponent; "},
		{"a fraction of zero", `7.0`, "it has a fraction or an exponent; "},
		{"an exponent", `1e3`, "it has a fraction or an exponent; "},
		{"a capital exponent", `1E3`, "it has a fraction or an exponent; "},
		{"a negative fraction", `-1.5`, "it has a fraction or an exponent; "},
		{"a negative number", `-5`, "ids are not negative; "},
		{"a negative string", `"-5"`, "ids are not negative; "},
		{"a number above 63 bits", `9223372036854775808`, "above the greatest id, 9223372036854775807 (63 bits); "},
		{"a string above 63 bits", `"9223372036854775808"`, "above the greatest id, 9223372036854775807 (63 bits); "},
		{"a number of 64 bits and more", `18446744073709551617`, "it has 20 characters, at most 19 are allowed; "},
		{"an empty string", `""`, "it is empty; "},
		{"letters", `"12ab"`, "'a' at position 3 is not in its alphabet; "},
		{"a fraction in a string", `"1.5"`, "'.' at position 2 is not in its alphabet; "},
		{"escaped letters", `"\u0061"`, "'a' at position 1 is not in its alphabet; "},
		{"true", `true`, ""},
		{"false", `false`, ""},
		{"an array", `[1]`, ""},
		{"an object", `{"id":"\\1"}`, ""},
		{"the word null in a string", `"null"`, "'n' at position 1 is not in its alphabet; "},
	} {
		t.Run(c.claim, func(t *testing.T) {
			id := firn.ID(42)
			err := json.Unmarshal([]byte(c.text), &id)
			var syntax *firn.SyntaxError
			if id != 42 || !errors.As(err, &syntax) || !errors.Is(err, firn.ErrSyntax) {
				t.Fatalf("json.Unmarshal(%s) = %d, %v, want 42 left as it was and a *SyntaxError", c.text, id, err)
			}
			if got, want := syntax.Reason, c.want+allowed; !strings.HasSuffix(got, want) || c.want == "" && got != want {
				t.Errorf("the reason is %q, want %q", got, want)
			}
		})
	}
	for _, text := range []string{"", `"`, `"1`, `\`, `"\"`, "-"} { // not JSON
		var id firn.ID
		if err := id.UnmarshalJSON([]byte(text)); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("UnmarshalJSON(%q) = %v, want ErrSyntax", text, err)
		}
	}
}

func TestIDIsAKeyOfJSONMaps(t *testing.T) {
	text, err := json.Marshal(map[firn.ID]bool{7: true})
	if string(text) != `{"7":true}` || err != nil {
		t.Fatalf("json.Marshal = %s, %v", text, err)
	}
	var got map[firn.ID]bool
	if err := json.Unmarshal(text, &got); !got[7] || err != nil {
		t.Errorf("json.Unmarshal = %v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"-7":true}`), &got); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("a negative key gives %v, want ErrSyntax", err)
	}
}

func TestIDIsDecimalAsText(t *testing.T) {
	text, err := firn.ID(7).AppendText([]byte("id="))
	if string(text) != "id=7" || err != nil {
		t.Errorf("AppendText = %s, %v", text, err)
	}
	text, err = xml.Marshal(struct {
		XMLName xml.Name `xml:"order"`
		ID      firn.ID  `xml:"id,attr"`
	}{ID: 7})
	if string(text) != `<order id="7"></order>` || err != nil {
		t.Errorf("xml.Marshal = %s, %v", text, err)
	}
	var id firn.ID
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(&bytes.Buffer{})
	flags.TextVar(&id, "after", firn.ID(3), "")
	if err := flags.Parse([]string{"-after", "12"}); id != 12 || err != nil {
		t.Errorf("the flag is %d, %v, want 12", id, err)
	}
	if err := id.UnmarshalText([]byte("1x")); id != 12 || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("UnmarshalText of 1x = %d, %v, want 12 left as it was and ErrSyntax", id, err)
	}
}

func TestIDIsEightBytesInGob(t *testing.T) {
	for _, id := range []firn.ID{0, 1, 1414362783486840832, firn.MaxID} {
		var stream bytes.Buffer
		if err := gob.NewEncoder(&stream).Encode(id); err != nil {
			t.Fatal(err)
		}
		var got firn.ID
		if err := gob.NewDecoder(&stream).Decode(&got); got != id || err != nil {
			t.Errorf("gob gives %d, %v for %d", got, err, id)
		}
		b, err := id.MarshalBinary()
		if len(b) != 8 || binary.BigEndian.Uint64(b) != uint64(id) || err != nil {
			t.Errorf("MarshalBinary = %v, %v", b, err)
		}
	}
	id := firn.ID(42)
	for _, b := range [][]byte{nil, make([]byte, 7), make([]byte, 9), make([]byte, 1<<16)} {
		if err := id.UnmarshalBinary(b); id != 42 || !errors.Is(err, firn.ErrSyntax) || len(err.Error()) > 300 {
			t.Errorf("UnmarshalBinary of %d bytes = %d, %v, want 42 left as it was and ErrSyntax", len(b), id, err)
		}
	}
	if err := id.UnmarshalBinary([]byte{0x80, 7: 0}); id != 42 || !errors.Is(err, firn.ErrRange) {
		t.Errorf("UnmarshalBinary of 2^63 = %d, %v, want 42 left as it was and ErrRange", id, err)
	}
}

func TestIDReadsAndWritesJSONWithoutAllocations(t *testing.T) {
	id, text, buf := firn.ID(1414362783486840832), []byte(`"1414362783486840832"`), make([]byte, 0, 64)
	for _, c := range []struct {
		what string
		want float64
		do   func()
	}{
		{"MarshalJSON", 1, func() { text, _ = id.MarshalJSON() }},
		{"UnmarshalJSON", 0, func() { _ = id.UnmarshalJSON(text) }},
		{"AppendText", 0, func() { buf, _ = id.AppendText(buf[:0]) }},
		{"UnmarshalText", 0, func() { _ = id.UnmarshalText(buf) }},
		// The one allocation converts the slice to an interface, as drivers do.
		{"Scan of bytes", 1, func() { _ = id.Scan(buf) }},
	} {
		if got := testing.AllocsPerRun(100, c.do); got > c.want {
			t.Errorf("%s allocates %v times, want %v", c.what, got, c.want)
		}
	}
}
