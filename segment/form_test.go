package segment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// A range that is given back, and a counter that is raised, keep what the record says of the counter.
func TestEachWriteKeepsTheFormOfACounter(t *testing.T) {
	ctx, s, stripe := t.Context(), memstore.New(nil), segment.Stripe{Stride: 1}
	with := func(want error, keys map[string]string) *segment.Segments {
		t.Helper()
		all, err := segment.New(segment.Config{Store: s, MinStep: 10, MaxStep: 10, Ahead: 1e-9, Form: store.Form{Name: "veil", Keys: keys}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.Next(ctx, "orders"); !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
		return all
	}
	record := func(want ...string) {
		t.Helper()
		e, err := s.Get(ctx, register.CounterKey("orders"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(string(e.Value), part) {
				t.Errorf("the record is %s, without %s", e.Value, part)
			}
		}
	}
	if c, err := segment.RaiseCounter(ctx, s, "orders", 4, stripe); c.Next != 5 || err != nil {
		t.Fatal(c, err)
	}
	record(`{"kind":"segment","next":"5"`)
	if err := with(nil, map[string]string{"1": "a", "2": "b"}).Close(ctx); err != nil {
		t.Fatal(err)
	}
	const all = `{"kind":"segment","form":"veil","keys":{"1":"a","2":"b"},"next":"`
	record(all+`6"`, `"step":-9`)
	one := with(nil, map[string]string{"1": "a"})
	record(all + `16"`)
	if err := one.Close(ctx); err != nil {
		t.Fatal(err)
	}
	record(all+`7"`, `"step":-9`)
	if _, err := segment.RaiseCounter(ctx, s, "orders", 69, stripe); err != nil {
		t.Fatal(err)
	}
	record(all + `70"`)
	with(store.ErrTaken, map[string]string{"2": "c"})
	with(store.ErrTaken, map[string]string{"3": "c", "1": "b"})
	record(all + `70"`)
}

func TestIDsThatArePlainAreNoVeils(t *testing.T) {
	for form, want := range map[string]error{"": nil, store.Plain: nil, "veil": store.ErrTaken} {
		s := memstore.New(nil)
		plain, err := segment.New(segment.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		other, err := segment.New(segment.Config{Store: s, Form: store.Form{Name: form}})
		if err != nil {
			t.Fatal(err)
		}
		for _, all := range []*segment.Segments{plain, other} {
			_, err = all.Next(t.Context(), "orders")
		}
		if !errors.Is(err, want) {
			t.Errorf("after plain ids, those of the form %q: %v, want %v", form, err, want)
		}
		for _, all := range []*segment.Segments{plain, other} {
			if err := all.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// A sequence of that name is left as it is, by everything that reads or writes a segment.
func TestASequenceIsNoSegment(t *testing.T) {
	ctx, s := t.Context(), memstore.New(nil)
	before, err := s.CompareAndSwap(ctx, register.CounterKey("txn"), 0, []byte(`{"kind":"sequence","last":"7","next":"8","stride":1}`))
	if err != nil {
		t.Fatal(err)
	}
	all, err := segment.New(segment.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	txn, err := all.Namespace("txn")
	if err != nil {
		t.Fatal(err)
	}
	source, err := segment.NewSource(segment.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"Next":         func() error { _, err := txn.Next(ctx); return err },
		"Raise":        func() error { return txn.Raise(ctx, 9) },
		"Fetch":        func() error { _, err := source.Fetch(ctx, "txn", segment.Ask{Step: 1, Above: -1}); return err },
		"ReadCounter":  func() error { _, err := segment.ReadCounter(ctx, s, "txn"); return err },
		"RaiseCounter": func() error { _, err := segment.RaiseCounter(ctx, s, "txn", 9, segment.Stripe{Stride: 1}); return err },
	} {
		taken := new(store.TakenError)
		if err := call(); !errors.As(err, &taken) || *taken != (store.TakenError{Counter: "txn", What: "kind", Have: "sequence", Want: "segment"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := all.Close(ctx); err != nil {
		t.Error(err)
	}
	if after, err := s.Get(ctx, register.CounterKey("txn")); err != nil || after.Revision != before.Revision {
		t.Errorf("the record became %s, %v", after.Value, err)
	}
	if _, err := segment.New(segment.Config{Store: s, Form: store.Form{Name: "\n"}}); !errors.Is(err, firn.ErrSyntax) {
		t.Error(err)
	}
}
