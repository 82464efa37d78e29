package storetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// nth gives call n of op this outcome.
func nth(op storetest.Op, n int, outcome storetest.Outcome) func(storetest.Call) storetest.Outcome {
	return func(c storetest.Call) storetest.Outcome {
		if c.Op == op && c.N == n {
			return outcome
		}
		return storetest.Pass
	}
}

func TestAWriteIsAppliedOrNotAsItsOutcomeSays(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		outcome   storetest.Outcome
		is        error
		unapplied bool
		reads     []bool // whether each read-back finds the write
	}{
		{storetest.Pass, nil, false, []bool{true}},
		{storetest.FailApplied, storetest.ErrAnswerLost, false, []bool{true, true}},
		{storetest.FailUnapplied, storetest.ErrAnswerLost, false, []bool{false, false, false}},
		{storetest.FailLate, storetest.ErrAnswerLost, false, []bool{false, true, true}},
		{storetest.Refuse, store.ErrRefused, true, []bool{false, false, false}},
	} {
		f := storetest.NewFaulty(memstore.New(nil))
		f.Script = nth(storetest.OpCompareAndSwap, 1, test.outcome)
		_, err := f.CompareAndSwap(ctx, "k", 0, []byte("v"))
		if !errors.Is(err, test.is) || store.Unapplied(err) != test.unapplied {
			t.Errorf("%v: answered %v", test.outcome, err)
		}
		for i, want := range test.reads {
			if e, err := f.Get(ctx, "k"); (err == nil) != want || want && string(e.Value) != "v" {
				t.Errorf("%v: read-back %d found %q, %v", test.outcome, i+1, e.Value, err)
			}
		}
	}
}

func TestALateWriteIsStillACompareAndSwap(t *testing.T) {
	ctx := context.Background()
	f := storetest.NewFaulty(memstore.New(nil))
	f.Script = nth(storetest.OpCompareAndSwap, 1, storetest.FailLate)
	_, lost := f.CompareAndSwap(ctx, "k", 0, []byte("late"))
	_, err := f.CompareAndSwap(ctx, "k", 0, []byte("first"))
	if lost == nil || err != nil {
		t.Fatal(lost, err)
	}
	if e, err := f.Get(ctx, "k"); err != nil || string(e.Value) != "first" {
		t.Errorf("got %q, %v", e.Value, err)
	}
}

func TestOnlyCallsThatReachTheStoreLetALateWriteArrive(t *testing.T) {
	ctx := context.Background()
	inner := memstore.New(nil)
	f := storetest.NewFaulty(inner)
	f.Script = nth(storetest.OpCompareAndSwap, 1, storetest.FailLate)
	_, lost := f.CompareAndSwap(ctx, "k", 0, nil)
	f.SetDown(true)
	for range 5 {
		if _, err := f.Get(ctx, "k"); !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	f.SetDown(false)
	if _, err := f.Get(ctx, "k"); lost == nil || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("first read after the outage: %v", err)
	}
	if _, err := f.List(ctx, ""); err != nil {
		t.Error(err)
	}
	if _, err := inner.Get(ctx, "k"); err != nil {
		t.Errorf("after the second: %v", err)
	}
}

func TestDownAnswersUnavailableAndAppliesNothing(t *testing.T) {
	ctx := context.Background()
	inner := memstore.New(nil)
	f := storetest.NewFaulty(inner)
	f.SetDown(true)
	_, get := f.Get(ctx, "k")
	_, swap := f.CompareAndSwap(ctx, "k", 0, nil)
	_, list := f.List(ctx, "")
	for _, err := range []error{get, swap, list} {
		if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) {
			t.Error(err)
		}
	}
	if n := len(inner.Snapshot()); n != 0 {
		t.Errorf("%d keys were written", n)
	}
	if c := f.Counts(); c != (storetest.Counts{Get: 1, CompareAndSwap: 1, List: 1}) {
		t.Errorf("counts %+v", c)
	}
}

func TestReadsFailWithoutAnAnswer(t *testing.T) {
	ctx := context.Background()
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate} {
		f := storetest.NewFaulty(memstore.New(nil))
		f.Script = func(storetest.Call) storetest.Outcome { return outcome }
		_, get := f.Get(ctx, "k")
		_, list := f.List(ctx, "")
		if !errors.Is(get, storetest.ErrAnswerLost) || !errors.Is(list, storetest.ErrAnswerLost) {
			t.Errorf("%v: %v, %v", outcome, get, list)
		}
	}
}

func TestEmbeddedAndCloseAreTheInnerStores(t *testing.T) {
	inner := memstore.New(nil)
	f := storetest.NewFaulty(inner)
	if !f.Traits().Embedded || storetest.NewFaulty(plain{inner}).Traits().Embedded {
		t.Error("embedded is not what the inner store says")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := inner.List(context.Background(), ""); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the inner store is not closed: %v", err)
	}
}

// plain hides the traits of a store.
type plain struct{ store.Store }

func (plain) Traits() store.Traits { return store.Traits{} }

func TestCallsAreCountedConcurrently(t *testing.T) {
	f := storetest.NewFaulty(memstore.New(nil))
	seen := map[int]bool{} // the script runs under the wrapper's lock
	f.Script = func(c storetest.Call) storetest.Outcome {
		seen[c.N] = true
		return storetest.FailLate
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if _, err := f.CompareAndSwap(context.Background(), "k", 0, nil); err == nil {
					t.Error("a scripted failure passed")
				}
			}
		})
	}
	group.Wait()
	if len(seen) != 800 || f.Counts().CompareAndSwap != 800 {
		t.Errorf("%d numbers, %+v", len(seen), f.Counts())
	}
}
