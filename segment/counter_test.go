package segment_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

var (
	whole = segment.Stripe{Stride: 1}
	odd   = segment.Stripe{Offset: 1, Stride: 2}
)

func TestACounterIsRaisedAndNeverLowered(t *testing.T) {
	s := memstore.New(nil)
	if _, err := segment.ReadCounter(t.Context(), s, "orders"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a name that is not there: %v", err)
	}
	for _, c := range []struct {
		name   string
		least  firn.ID
		stripe segment.Stripe
		want   uint64
	}{
		{"orders", 2001, whole, 2001},
		{"orders", 5, whole, 2001},
		{"orders", 2001, whole, 2001},
		{"orders", 9000, whole, 9000},
		{"odd", 100, odd, 101},
		{"odd", 101, odd, 101},
		{"odd", 102, odd, 103},
		{"zero", 0, whole, 0},
		{"last", firn.MaxID, whole, 1<<63 - 1},
		{"beyond", firn.MaxID, segment.Stripe{Offset: 0, Stride: 2}, 1 << 63},
	} {
		raised, err := segment.RaiseCounter(t.Context(), s, c.name, c.least, c.stripe)
		if want := (segment.Counter{Next: c.want, Stripe: c.stripe}); err != nil || raised != want {
			t.Errorf("%s raised to %d: %v, %v, want %v", c.name, c.least, raised, err, want)
		}
		if read, err := segment.ReadCounter(t.Context(), s, c.name); err != nil || read != raised {
			t.Errorf("%s is read as %v, %v, not %v", c.name, read, err, raised)
		}
	}
	names, err := segment.Open(segment.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := names.Next(t.Context(), "orders"); err != nil || id != 9000 {
		t.Errorf("the first id is %d, %v", id, err)
	}
	if err := names.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestACounterThatCannotBeRaisedStays(t *testing.T) {
	s := memstore.New(nil)
	if _, err := s.CompareAndSwap(t.Context(), segment.Key("foreign"), 0, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := segment.RaiseCounter(t.Context(), s, "odd", 1, odd); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		least  firn.ID
		stripe segment.Stripe
		want   error
	}{
		{"a b", 1, whole, firn.ErrSyntax},
		{"orders", -1, whole, firn.ErrRange},
		{"orders", 1, segment.Stripe{Offset: 2, Stride: 2}, firn.ErrRange},
		{"odd", 1000, whole, segment.ErrStripe},
		{"foreign", 1, whole, segment.ErrForeign},
	} {
		if now, err := segment.RaiseCounter(t.Context(), s, c.name, c.least, c.stripe); !errors.Is(err, c.want) || now != (segment.Counter{}) {
			t.Errorf("%q to %d: %v, %v, want %v", c.name, c.least, now, err, c.want)
		}
	}
	if now, err := segment.ReadCounter(t.Context(), s, "odd"); err != nil || now.Next != 1 {
		t.Errorf("%v, %v", now, err)
	}
}

func TestACounterIsRaisedThoughAnswersAreLost(t *testing.T) {
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate} {
		s := storetest.NewFaulty(memstore.New(nil))
		s.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.N <= 3 {
				return outcome
			}
			return storetest.Pass
		}
		if now, err := segment.RaiseCounter(t.Context(), s, "orders", 500, whole); err != nil || now.Next != 500 {
			t.Errorf("%v: %v, %v", outcome, now, err)
		}
		if now, err := segment.ReadCounter(t.Context(), s, "orders"); err != nil || now.Next != 500 {
			t.Errorf("%v: %v, %v", outcome, now, err)
		}
	}
	s := storetest.NewFaulty(memstore.New(nil))
	s.Script = func(storetest.Call) storetest.Outcome { return storetest.Refuse }
	if _, err := segment.RaiseCounter(t.Context(), s, "orders", 500, whole); !errors.Is(err, store.ErrRefused) {
		t.Errorf("refused: %v", err)
	}
	s.SetDown(true)
	if _, err := segment.RaiseCounter(t.Context(), s, "orders", 500, whole); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
	if n := s.Counts().CompareAndSwap; n > 1 {
		t.Errorf("%d writes", n)
	}
}
