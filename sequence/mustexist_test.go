package sequence_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// A second form is refused, and the first stays.
func TestAFormIsDeclaredOnce(t *testing.T) {
	mem := memstore.New(nil)
	txn := open(t, mem, sequence.Config{})
	if err := txn.Declare("template A{n:5}"); err != nil {
		t.Fatal(err)
	}
	fails(t, "another form", txn.Declare("template B{n:5}"), store.ErrTaken, "template A{n:5}")
	want(t, txn, 1)
	if e, err := mem.Get(background, register.CounterKey("txn")); err != nil || !strings.Contains(string(e.Value), `"form":"template A{n:5}"`) {
		t.Errorf("%s, %v", e.Value, err)
	}
}

func TestASequenceThatMustExistIsNotMade(t *testing.T) {
	mem := memstore.New(nil)
	txn := open(t, mem, sequence.Config{MustExist: true})
	_, next := txn.Next(background)
	_, block := txn.ReserveIn(background, 1, 5000, 1000)
	_, fill := txn.Fill(background, make([]firn.ID, 3))
	for what, err := range map[string]error{"next": next, "in a block": block, "fill": fill, "a raise to nothing": txn.Raise(background, 0)} {
		var back *store.SetBackError
		if !errors.As(err, &back) || *back != (store.SetBackError{Counter: "txn", Missing: true}) {
			t.Errorf("%s: %v", what, err)
		}
		fails(t, what, err, store.ErrSetBack, "has no counter", "raise")
	}
	if err := txn.Look(background); err != nil { // this process knows of no id
		t.Error(err)
	}
	if now := mem.Snapshot(); len(now) != 0 {
		t.Errorf("a refusal wrote: %v", now)
	}
	exists(t, mem)
	want(t, txn, 1)
	mem.Restore(nil)
	newcomer := open(t, mem, sequence.Config{MustExist: true})
	if err := newcomer.Raise(background, 1); err != nil {
		t.Error(err)
	}
	want(t, newcomer, 2)
}
