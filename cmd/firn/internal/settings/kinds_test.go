package settings_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/prefixed"
)

func TestTheDocumentsNameEachKind(t *testing.T) {
	for path, times := range map[string]int{"docs/kinds.md": 2, "docs/cli.md": 1, "proto/firn/v1/id.proto": 1, "client/client.go": 1} {
		text, err := os.ReadFile(filepath.Join("../../../..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range settings.Kinds {
			form := `\| ` + "`" + k.Name + "`" // in a table
			if filepath.Ext(path) != ".md" {
				form = `//.*\b` + k.Name + `\b`
			}
			if found := len(regexp.MustCompile(form).FindAll(text, -1)); found < times {
				t.Errorf("%s has the kind %s %d times, want %d", path, k.Name, found, times)
			}
		}
	}
}

func TestEachIDThatIsNotANumberIsDecodedAsItsKind(t *testing.T) {
	for _, k := range settings.Kinds {
		if k.Source != settings.Local {
			continue
		}
		if k.Wide == nil || k.Read == nil {
			t.Errorf("kind %s needs Wide and Read", k.Name)
			continue
		}
		n := settings.Namespace{Kind: k.Name}
		next, err := k.Wide(n)
		if err != nil {
			t.Fatal(err)
		}
		id, text, err := next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read, err := k.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := read(text); err != nil || c.Kind != k.Name {
			t.Errorf("%s read as its own kind: %+v, %v", text, c, err)
		}
		texts := []string{text}
		if slices.ContainsFunc(k.Settings(), func(s settings.Setting) bool { return s.Key == "prefix" }) {
			p, err := prefixed.New("ord")
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, p.Bytes(id))
		}
		for _, text := range texts {
			if c, _, found, err := decode.Kind(text, nil); err != nil || !found || c.Kind != k.Name {
				t.Errorf("%s of kind %s decoded: %+v, %v, %v", text, k.Name, c, found, err)
			}
		}
	}
}

func TestEachKindReadsBackItsIDs(t *testing.T) {
	for _, k := range settings.Kinds {
		if (k.Number != nil) != k.Numeric || (k.Read != nil) == k.Numeric || k.Makes == nil {
			t.Errorf("kind %s needs Makes, and Number if it is Numeric, else Read", k.Name)
		}
		if k.Wide == nil {
			continue
		}
		next, err := k.Wide(settings.Namespace{Kind: k.Name})
		if err != nil {
			t.Fatal(err)
		}
		id, text, err := next(t.Context())
		if err != nil || k.Bytes != len(id) || k.Text(id) != text {
			t.Errorf("kind %s: %x is %d bytes and the text %s, want %d and %s, %v", k.Name, id, k.Bytes, k.Text(id), len(id), text, err)
		}
	}
}

func TestANamespaceReadsIDsInEveryEncodingThatTheyAreIssuedIn(t *testing.T) {
	id := firn.ID(249682737550880157)
	for _, c := range []struct {
		namespace    settings.Namespace
		text, format string
		want         string // the id, or a part of the error
	}{
		{settings.Namespace{}, id.String(), "", "249682737550880157"},
		{settings.Namespace{}, firn.Base58.Fixed(id), "", "249682737550880157"},
		{settings.Namespace{}, "20261120-235003.513-w17-s42", "", "249682737550659626"},
		{settings.Namespace{Kind: "segment"}, "42", "", "42"},
		{settings.Namespace{Kind: "segment"}, firn.Base62.Fixed(42), "base62", "42"},
		{settings.Namespace{Kind: "segment"}, firn.Base62.Fixed(4200), "", "another encoding is read if it is named, such as format "},
		{settings.Namespace{Kind: "sequence"}, "-5", "", `"-5" is not a valid decimal id`},
		{settings.Namespace{Kind: "sequence"}, "0", "", "0 is out of range"},
		{settings.Namespace{Kind: "segment", Segment: settings.Segment{Stride: 4, Offset: 3}}, "7", "", "7"},
		{settings.Namespace{Kind: "segment", Segment: settings.Segment{Stride: 4, Offset: 3}}, "8", "", "8 has remainder 0 modulo 4"},
		{settings.Namespace{Kind: "uuid", UUID: settings.UUID{Version: 4}}, "00000000-0000-0000-0000-000000000000", "", "it has version 0"},
		{settings.Namespace{Kind: "uuid"}, "0193a0c5-e2b0-7010-0000-000000000001", "", "variant Reserved"},
	} {
		r, err := c.namespace.Reader(nil)
		if err != nil {
			t.Fatal(err)
		}
		contents, err := r.Read(c.text, c.format)
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q as %q: %v, want %s", c.namespace.KindName(), c.text, c.format, err, c.want)
		}
		if err == nil && fmt.Sprint(contents.All()[1].Value) != c.want {
			t.Errorf("%s: %q as %q: %v, want %s", c.namespace.KindName(), c.text, c.format, contents, c.want)
		}
	}
}

// set sets a setting of n to a text, as the file does.
func set(t *testing.T, n *settings.Namespace, s settings.Setting, text string) {
	t.Helper()
	var err error
	switch into := s.In(n).(type) {
	case *string:
		*into = text
	case *[]string:
		*into = strings.Split(text, ", ")
	case *[]int64:
		err = json.Unmarshal([]byte(text), into) // written as in YAML
	case **int64:
		*into = new(int64)
		**into, err = strconv.ParseInt(text, 10, 64)
	case interface{ UnmarshalText(text []byte) error }:
		err = into.UnmarshalText([]byte(text))
	default:
		_, err = fmt.Sscan(text, into)
	}
	if err != nil {
		t.Fatalf("%s %q: %v", s.Key, text, err)
	}
}

// made returns everything that the library gets of a namespace, as text.
func made(t *testing.T, n settings.Namespace) string {
	t.Helper()
	lease, _ := n.Lease()
	pinned := int64(-1)
	if lease.Pinned != nil {
		pinned = *lease.Pinned
	}
	lease.Pinned, lease.Generator.Time = nil, nil
	number, _, _ := n.NumberFormat()
	number.Counter, number.Time = nil, nil
	serials, _ := n.SerialFormat()
	text := ""
	if serials != nil {
		text, _ = serials.Text(1 << 40)
	}
	return fmt.Sprintf("%+v %d %+v %+v %+v %s %s", lease, pinned, n.SegmentConfig(), n.SequenceConfig(), number, number.Zone, text)
}

func TestEachSettingReachesTheLibrary(t *testing.T) {
	elsewhere := []string{"kind", "veil", "prefix", "version"} // version: TestWideIDs
	values := map[string]string{
		"pool": "another", "unit": "2ms", "epoch": "2026-01-01", "target": "20m", "layout": "twitter", "clock": "wall", "start": "zero", "rollback": "refuse", "datacenter": "1",
		"width": "40", "check": "luhn", "zone": "+08:00", "from": "5", "must_exist": "true",
	}
	for _, s := range settings.All() {
		if slices.Contains(elsewhere, s.Key) {
			continue
		}
		value := values[s.Key]
		if value == "" {
			value = s.Example
		}
		if value == "" || value == s.Default {
			t.Errorf("%s: give it an example, or a value in this test", s.Key)
			continue
		}
		n := settings.Namespace{}
		without := made(t, n)
		set(t, &n, s, value)
		if made(t, n) == without {
			t.Errorf("%s: %s changes no Config of the library", s.Key, value)
		}
	}
}

var fromTo = regexp.MustCompile(`^(\S+) to (\S+)$`)

// Of each setting whose numbers are documented as "A to B", A and B are allowed, and nothing beyond.
func TestTheDocumentedRangesAreThoseOfTheLibrary(t *testing.T) {
	ranges := 0
	for _, k := range settings.Kinds {
		for _, s := range k.Settings() {
			ends := fromTo.FindStringSubmatch(s.Allowed)
			if ends == nil {
				continue
			}
			ranges++
			for i, end := range ends[1:] {
				step := int64(2*i - 1) // one below the least, one above the greatest
				beyond := ""
				if d, err := time.ParseDuration(end); err == nil {
					beyond = (d + time.Duration(step)).String()
				} else if number, err := strconv.ParseInt(end, 10, 64); err != nil {
					continue // another setting
				} else if number+step > 0 && number != int64(firn.MaxID) { // else it is no number, or the default
					beyond = strconv.FormatInt(number+step, 10)
				}
				n := settings.Namespace{Kind: k.Name}
				set(t, &n, s, end)
				if err := n.Mistakes()[s.Key]; err != nil {
					t.Errorf("%s: %s %s is documented as allowed: %v", k.Name, s.Key, end, err)
				}
				if beyond == "" {
					continue
				}
				n = settings.Namespace{Kind: k.Name}
				set(t, &n, s, beyond)
				if n.Mistakes()[s.Key] == nil {
					t.Errorf("%s: %s %s is beyond what is documented as allowed", k.Name, s.Key, beyond)
				}
			}
		}
	}
	if ranges < 4 {
		t.Errorf("found only %d ranges", ranges)
	}
}
