package sequence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A user is a process that makes an id of one name, as a segment or a sequence, in a form.
type user struct {
	kind string
	form store.Form
}

func (u user) next(t *testing.T, s store.Store) (firn.ID, error) {
	t.Helper()
	if u.kind == "segment" {
		all, err := segment.New(segment.Config{Store: s, MinStep: 10, Form: u.form})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := all.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		return all.Next(t.Context(), "orders")
	}
	all, err := sequence.New(sequence.Config{Store: s, Form: u.form})
	if err != nil {
		t.Fatal(err)
	}
	one, err := all.Namespace("orders")
	if err != nil {
		t.Fatal(err)
	}
	return one.Next(t.Context())
}

func keyed(keys ...string) store.Form {
	f := store.Form{Name: "veil", Keys: map[string]string{}}
	for i := 0; i < len(keys); i += 2 {
		f.Keys[keys[i]] = keys[i+1]
	}
	return f
}

// One counter of a store has one kind and one form, whoever comes first, and a process with another uses no ids.
func TestANameIsOneCounter(t *testing.T) {
	plain := store.Form{}
	for _, c := range []struct {
		first, second user
		what          string // in what they differ
	}{
		{user{"segment", plain}, user{"segment", plain}, ""},
		{user{"segment", plain}, user{"sequence", plain}, "kind"},
		{user{"sequence", plain}, user{"segment", plain}, "kind"},
		{user{"sequence", keyed("0", "a")}, user{"segment", keyed("0", "a")}, "kind"},
		{user{"segment", plain}, user{"segment", keyed("0", "a")}, "form"},
		{user{"sequence", keyed("0", "a")}, user{"sequence", plain}, "form"},
		{user{"segment", keyed("0", "a")}, user{"segment", keyed("0", "a")}, ""},
		{user{"segment", keyed("0", "a")}, user{"segment", keyed("0", "b")}, "key"},
		{user{"sequence", keyed("1", "a")}, user{"sequence", keyed("1", "b")}, "key"},
		{user{"sequence", keyed("1", "a")}, user{"sequence", keyed("2", "b", "1", "a")}, ""},
		{user{"sequence", keyed("1", "a")}, user{"sequence", keyed("2", "b")}, ""},
	} {
		s := memstore.New(nil)
		if id, err := c.first.next(t, s); id != 1 || err != nil {
			t.Fatal(id, err)
		}
		id, err := c.second.next(t, s)
		if c.what == "" {
			if id != 2 || err != nil {
				t.Errorf("%+v: %d, %v", c, id, err)
			}
			continue
		}
		taken := new(store.TakenError)
		if !errors.Is(err, store.ErrTaken) || !errors.As(err, &taken) || taken.What != c.what || taken.Counter != "orders" || !strings.Contains(err.Error(), "use another name") {
			t.Errorf("%+v: %d, %v", c, id, err)
		}
		if id, err := c.first.next(t, s); id != 2 || err != nil {
			t.Errorf("%+v: the first continues with %d, %v", c, id, err)
		}
	}
}

// What one process adds, all others keep: also one that gives ids back, and one that raises the counter.
func TestARecordKeepsWhatItsCounterIsFor(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []string{"segment", "sequence"} {
		s := memstore.New(nil)
		for _, keys := range []store.Form{keyed("1", "a"), keyed("1", "a", "2", "b"), keyed("1", "a")} {
			if _, err := (user{kind, keys}).next(t, s); err != nil {
				t.Fatal(err)
			}
		}
		if kind == "segment" {
			if c, err := segment.RaiseCounter(ctx, s, "orders", 100, segment.Stripe{Stride: 1}); c.Next != 101 || err != nil {
				t.Error(c, err)
			}
		}
		if id, err := (user{kind, keyed("2", "c")}).next(t, s); !errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %d, %v", kind, id, err)
		}
	}
}

// A counter that was raised before its first id, as firn import does, takes the form of its first user.
func TestARaisedCounterHasNoFormYet(t *testing.T) {
	for _, form := range []store.Form{{}, keyed("0", "a")} {
		s := memstore.New(nil)
		if _, err := segment.RaiseCounter(t.Context(), s, "orders", 70, segment.Stripe{Stride: 1}); err != nil {
			t.Fatal(err)
		}
		if id, err := (user{"sequence", form}).next(t, s); !errors.Is(err, store.ErrTaken) {
			t.Errorf("as a sequence: %d, %v", id, err)
		}
		if id, err := (user{"segment", form}).next(t, s); id != 71 || err != nil {
			t.Errorf("%v: %d, %v", form, id, err)
		}
		if id, err := (user{"segment", store.Form{Name: "another"}}).next(t, s); !errors.Is(err, store.ErrTaken) {
			t.Errorf("%v: another: %d, %v", form, id, err)
		}
	}
	s := memstore.New(nil)
	if _, err := (user{kind: "sequence"}).next(t, s); err != nil {
		t.Fatal(err)
	}
	if c, err := segment.ReadCounter(t.Context(), s, "orders"); !errors.Is(err, store.ErrTaken) {
		t.Errorf("a sequence reads as %v, %v", c, err)
	}
	if c, err := segment.RaiseCounter(t.Context(), s, "orders", 9, segment.Stripe{Stride: 1}); !errors.Is(err, store.ErrTaken) {
		t.Errorf("a sequence is raised to %v, %v", c, err)
	}
}

func TestASequenceIsDeclaredInOneForm(t *testing.T) {
	txn := open(t, memstore.New(nil), sequence.Config{})
	for _, form := range []string{"2006-NNNN", "2006-NNNN"} {
		if err := txn.Declare(form); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Declare("NNNN"); !errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("another form: %v", err)
	}
	want(t, txn, 1)
}

// A record that was written by hand takes kind and form of its first user; a kind or a form that makes no sense is not overwritten.
func TestARecordWithoutAUseGetsThatOfItsFirstWriter(t *testing.T) {
	for _, c := range []struct {
		kind, record string
		want         error
	}{
		{"sequence", `{"last":"5"}`, nil}, {"segment", `{"next":"6","stride":1}`, nil},
		{"segment", `{"last":"5"}`, store.ErrForeign}, {"sequence", `{"next":"6","stride":1}`, store.ErrForeign},
		{"sequence", `{"kind":"other","last":"5"}`, store.ErrTaken}, {"sequence", `{"form":"\n","last":"5"}`, store.ErrForeign},
		{"segment", `{"keys":{"` + strings.Repeat("1", 65) + `":""},"next":"6","stride":1}`, store.ErrForeign},
		{"segment", `{"kind":7,"next":"6","stride":1}`, store.ErrForeign},
	} {
		s := memstore.New(nil)
		if _, err := s.CompareAndSwap(t.Context(), key[:len(key)-len("txn")]+"orders", 0, []byte(c.record)); err != nil {
			t.Fatal(err)
		}
		id, err := (user{kind: c.kind}).next(t, s)
		if !errors.Is(err, c.want) || err == nil && id != 6 {
			t.Errorf("%s as a %s: %d, %v", c.record, c.kind, id, err)
		}
		other := map[string]string{"segment": "sequence", "sequence": "segment"}[c.kind]
		if c.want == nil {
			if id, err := (user{kind: other}).next(t, s); !errors.Is(err, store.ErrTaken) {
				t.Errorf("%s as a %s and then as a %s: %d, %v", c.record, c.kind, other, id, err)
			}
		}
	}
}

func TestAFormIsChecked(t *testing.T) {
	if _, err := sequence.New(sequence.Config{Store: memstore.New(nil), Form: store.Form{Name: "\n"}}); !errors.Is(err, firn.ErrSyntax) {
		t.Error(err)
	}
}

// A program may build its next Config in the same map.
func TestAFormIsTheCallersNoMore(t *testing.T) {
	s, form := memstore.New(nil), keyed("1", "a")
	segments, err1 := segment.New(segment.Config{Store: s, Form: form})
	sequences, err2 := sequence.New(sequence.Config{Store: s, Form: form})
	form.Keys["1"] = "b"
	txn, err3 := sequences.Namespace("txn")
	_, err4 := segments.Next(t.Context(), "orders")
	_, err5 := txn.Next(t.Context())
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	entries, err := s.List(t.Context(), "")
	for _, e := range entries {
		if !strings.Contains(string(e.Value), `"1":"a"`) {
			t.Errorf("%s", e.Value)
		}
	}
	if err != nil || len(entries) != 2 {
		t.Error(entries, err)
	}
}
