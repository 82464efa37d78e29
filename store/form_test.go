package store_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// form is a form with keys, as "name", key, value, ….
func form(name string, keys ...string) store.Form {
	f := store.Form{Name: name, Keys: map[string]string{}}
	for i := 0; i < len(keys); i += 2 {
		f.Keys[keys[i]] = keys[i+1]
	}
	return f
}

func TestFormsAgreeOrSayInWhatTheyDiffer(t *testing.T) {
	for _, c := range []struct{ mine, found, want store.Form }{
		{store.Form{}, store.Form{}, store.Form{}}, {form("a"), store.Form{}, form("a")}, {store.Form{}, form("a"), form("a")}, {form("a"), form("a"), form("a")},
		{form("a", "1", "x"), form("a"), form("a", "1", "x")}, {form("a"), form("a", "1", "x"), form("a", "1", "x")},
		{form("a", "1", "x", "2", "y"), form("", "2", "y", "3", "z"), form("a", "1", "x", "2", "y", "3", "z")},
	} {
		mine := form("", "", "")
		mine.Keys = maps.Clone(c.mine.Keys)
		got, err := c.mine.With("orders", c.found)
		if err != nil || got.Name != c.want.Name || !maps.Equal(got.Keys, c.want.Keys) {
			t.Errorf("%v with %v: %v, %v", c.mine, c.found, got, err)
		}
		if !maps.Equal(c.mine.Keys, mine.Keys) {
			t.Errorf("the keys of a form became %v", c.mine.Keys)
		}
	}
	for _, c := range []struct {
		mine, found store.Form
		want        store.TakenError
		text        string
	}{
		{form("b"), form("a"), store.TakenError{Counter: "orders", What: "form", Have: "a", Want: "b"},
			`the counter "orders" has the form "a", not "b", and ids could repeat: use another name, or the settings of those who use it`},
		{form("a", "1", "y", "2", "b", "3", "c", "4", "d", "5", "e"), form("a", "5", "e", "4", "d", "3", "c", "2", "b", "1", "x"), store.TakenError{Counter: "orders", What: "key", Key: "1", Have: "x", Want: "y"},
			`the counter "orders" has the key 1 "x", not "y", and ids could repeat: use another name, or the settings of those who use it`},
	} {
		got, err := c.mine.With("orders", c.found)
		if taken := new(store.TakenError); !errors.As(err, &taken) || *taken != c.want || !errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrForeign) || err.Error() != c.text || got.Name != "" || got.Keys != nil {
			t.Errorf("%v with %v: %v", c.mine, c.found, err)
		}
	}
}

func TestAFormHasBounds(t *testing.T) {
	many := form("")
	for i := range 256 {
		many.Keys[string(rune(0x4e00+i))] = "a"
	}
	more := form("", "more", "b")
	maps.Copy(more.Keys, many.Keys)
	for _, c := range []struct {
		form store.Form
		want error
	}{
		{form(strings.Repeat("x", 256)), nil}, {form(strings.Repeat("x", 257)), firn.ErrRange}, {form("a\tb"), firn.ErrSyntax}, {form("\xff"), firn.ErrSyntax}, {form("模板 {n:3}"), nil},
		{form("", strings.Repeat("k", 64), strings.Repeat("v", 64)), nil}, {form("", strings.Repeat("k", 65), ""), firn.ErrRange},
		{form("", "k", strings.Repeat("v", 65)), firn.ErrRange}, {form("", "k", "\n"), firn.ErrSyntax}, {form("", "\n", ""), firn.ErrSyntax}, {many, nil}, {more, firn.ErrRange},
	} {
		if err := c.form.Check(); !errors.Is(err, c.want) {
			t.Errorf("%.20v: %v, want %v", c.form, err, c.want)
		}
	}
	for _, key := range []string{"\n", "\t"} { // among many, in any order
		bad := form("", key, "")
		maps.Copy(bad.Keys, many.Keys)
		delete(bad.Keys, string(rune(0x4e00)))
		if err := bad.Check(); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q: %v", key, err)
		}
	}
	var outside *firn.RangeError
	if err := more.Check(); !errors.As(err, &outside) || outside.Value != "257" || outside.Min != "0" || outside.Max != "256" {
		t.Errorf("%+v", outside)
	}
	if err := form(strings.Repeat("x", 257)).Check(); !errors.As(err, &outside) || outside.Value != "257" || outside.Min != "0" || outside.Max != "256" {
		t.Errorf("%+v", outside)
	}
	if _, err := many.With("orders", form("", "more", "b")); !errors.Is(err, firn.ErrRange) {
		t.Errorf("a key more than there may be: %v", err)
	}
}

func TestASetBackErrorSaysWhatTheStoreHasAndWhatToDo(t *testing.T) {
	for want, e := range map[string]store.SetBackError{
		`the store has no counter "o", which must exist: find the greatest id that anybody received, and raise the counter to it, or to 0 if it is new (firn raise; in Go: Raise)`:                                                                  {Counter: "o", Missing: true},
		`the store has lost the counter "o", of which this process has had ids up to 14: find the greatest id that anybody received, and raise the counter to it, and at least to that (firn raise; in Go: Raise)`:                                  {Counter: "o", Missing: true, Known: 14},
		`the counter "o" was set back: the store says that 4 was the last id used, and this process has had ids up to 14: find the greatest id that anybody received, and raise the counter to it, and at least to that (firn raise; in Go: Raise)`: {Counter: "o", Found: 4, Known: 14},
	} {
		if got := e.Error(); got != want || !errors.Is(&e, store.ErrSetBack) || errors.Is(&e, store.ErrTaken) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
