package sequence_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

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

func TestARaisedCounterDecidesWhereASequenceContinues(t *testing.T) {
	mem := memstore.New(nil)
	s := storetest.NewFaulty(mem)
	raise := func(to, want firn.ID) {
		t.Helper()
		if last, err := sequence.RaiseCounter(background, s, "txn", to); last != want || err != nil {
			t.Errorf("raised to %d: %d, %v", to, last, err)
		}
	}
	raise(70, 70)
	raise(9, 70) // never lower
	form := store.Form{Name: "veil 40"}
	txn := open(t, mem, sequence.Config{Form: form}) // its first user decides the form
	want(t, txn, 71)
	raise(80, 80)
	want(t, txn, 81)
	calls := 0
	s.Script = func(c storetest.Call) storetest.Outcome { // an answer is lost
		if calls++; calls == 2 {
			return storetest.FailApplied
		}
		return storetest.Pass
	}
	raise(90, 90)
	want(t, txn, 91)
	s.Script = func(storetest.Call) storetest.Outcome { return storetest.FailUnapplied }
	_, err := sequence.RaiseCounter(background, s, "txn", 100)
	fails(t, "a store that is away", err, storetest.ErrAnswerLost, `"txn": raise`)
	for name, err := range map[string]error{
		"no store":   second(sequence.RaiseCounter(background, nil, "txn", 1)),
		"a bad name": second(sequence.RaiseCounter(background, mem, "a/b", 1)),
		"below 0":    second(sequence.RaiseCounter(background, mem, "txn", -1)),
	} {
		if err == nil {
			t.Error(name)
		}
	}
	if _, err := segment.RaiseCounter(background, mem, "orders", 1, segment.Stripe{Stride: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := sequence.RaiseCounter(background, mem, "orders", 1); !errors.Is(err, store.ErrTaken) {
		t.Error(err)
	}
}

func second(_ firn.ID, err error) error { return err }
