package numbering_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/sequence"
)

func TestAnExhaustedPeriodErrorNamesWhatHelps(t *testing.T) {
	for _, c := range []struct {
		template  string
		max       firn.ID
		used, ask int
		want      string
	}{
		{"A{n:1}", 0, 9, 1, `"A{n:1}" has 9 numbers in all: sequence "orders" has 0 of them left, not 1: use a wider {n:…} than {n:1} under another name`},
		{"A{n:1}", 0, 7, 3, `"A{n:1}" has 9 numbers in all: sequence "orders" has 2 of them left, not 3: ` +
			`ask for fewer, or use a wider {n:…} than {n:1} under another name`},
		{"{yyyyMMdd}-{n:1}", 0, 9, 1, `"{yyyyMMdd}-{n:1}" has 9 numbers in a day: sequence "orders" has 0 of them left, not 1: ` +
			`wait for the next day, or use a wider {n:…} than {n:1} under another name`},
		{"A{n:1}", 5, 5, 1, `"A{n:1}" has 9 numbers in all: sequence "orders" has 0 ids left up to 5, not 1: ` +
			`raise Max (at most 9223372036854775807), unless a veil ends there, or use another name`},
	} {
		orders := counterOf(t, sequence.Config{Store: newStore(), Max: c.max}, "orders")
		f, err := numbering.New(numbering.Config{Template: c.template, Counter: orders, Time: newClock("2026-11-21T09:00:00Z")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Reserve(t.Context(), c.used); err != nil {
			t.Fatal(err)
		}
		_, err = f.Reserve(t.Context(), c.ask)
		if !errors.Is(err, numbering.ErrExhausted) || !errors.Is(err, sequence.ErrExhausted) || err.Error() != "numbering: no number left in this period: "+c.want {
			t.Errorf("%v\nwant: %s", err, c.want)
		}
	}
}

// A period of the widest template has too many numbers to take, so the test raises the counter.
func TestTheErrorOfTheWidestTemplateSuggestsNoWiderOne(t *testing.T) {
	orders := counterOf(t, sequence.Config{Store: newStore()}, "orders")
	f, err := numbering.New(numbering.Config{Template: "{n:10}", Counter: orders})
	if err != nil {
		t.Fatal(err)
	}
	if err := orders.Raise(t.Context(), 9_999_999_999); err != nil {
		t.Fatal(err)
	}
	const want = `numbering: no number left in this period: "{n:10}" has 9999999999 numbers in all: ` +
		`sequence "orders" has 0 of them left, not 1: use another template under another name`
	if _, err := f.Next(t.Context()); err == nil || err.Error() != want {
		t.Errorf("%v\nwant: %s", err, want)
	}
}
