package register_test

import (
	"context"
	"errors"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// answering answers writes with an error or nil, and executes none.
type answering struct {
	store.Store
	err  error
	over []store.Revision
}

func (a *answering) CompareAndSwap(_ context.Context, _ string, old store.Revision, _ []byte) (store.Entry, error) {
	a.over = append(a.over, old)
	return store.Entry{}, a.err
}

func TestWhetherARegisterIsWritable(t *testing.T) {
	mem := memstore.New(nil)
	for range 2 { // without an entry, and with one
		r := &register.Register{Store: mem, Key: "k"}
		before, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Writable(t.Context()); err != nil {
			t.Error(err)
		}
		if after, err := (&register.Register{Store: mem, Key: "k"}).Read(t.Context()); err != nil || after.Revision != before.Revision {
			t.Errorf("it wrote: %v, %v, %v", before, after, err)
		}
		if _, err := r.Write(t.Context(), []byte("a")); err != nil {
			t.Errorf("a write afterwards: %v", err)
		}
	}
	for _, answer := range []error{nil, store.ErrUnavailable, store.ErrRefused} {
		a := &answering{Store: mem, err: answer}
		r := &register.Register{Store: a, Key: "k"}
		found, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := answer
		if want == nil { // a store that takes each write
			want = store.ErrRefused
		}
		if err := r.Writable(t.Context()); !errors.Is(err, want) || len(a.over) != 1 || a.over[0] == found.Revision {
			t.Errorf("%v: %v, over %v", answer, err, a.over)
		}
		if _, err := r.Write(t.Context(), nil); (len(a.over) == 2) != (answer != nil) || answer == nil && !errors.Is(err, store.ErrRefused) {
			t.Errorf("%v: a write afterwards, over %v: %v", answer, a.over, err)
		}
	}
}

func TestEachSetBackIsCountedOnce(t *testing.T) {
	k := new(register.Memory).Of("k")
	k.Had(5)
	for i, c := range []struct {
		revision store.Revision
		had      int64 // before
		first    bool
	}{{1, 0, true}, {1, 0, false}, {2, 0, true}, {2, 4, false}, {2, 5, true}, {2, 6, true}} {
		if c.had > 0 {
			k.Had(c.had)
		}
		if first := k.SetBack(c.revision); first != c.first {
			t.Errorf("%d: %v", i, first)
		}
	}
	if k.High() != 6 {
		t.Error(k.High())
	}
}
