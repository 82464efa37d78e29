package numbering_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/store/storetest"
)

// A narrower template would read the position of a counter of wider numbers as the year 20261.
func TestANarrowerTemplateOfOneCounterIsRefused(t *testing.T) {
	c := newClock("2026-11-20T12:00:00Z")
	for _, test := range []struct{ wide, narrow string }{
		{"{yyyy}-{n:5}", "{yyyy}-{n:4}"}, {"{yyyyMMdd}-{n:6}", "{yyyyMMdd}-{n:5}"}, {"{n:2}", "{n:1}"},
	} {
		s := newStore()
		wide := process(t, s, numbering.Config{Template: test.wide, Time: c})
		if _, err := wide.Reserve(context.Background(), 12); err != nil {
			t.Fatal(err)
		}
		text, err := process(t, s, numbering.Config{Template: test.narrow, Time: c}).Next(context.Background())
		if err == nil || !strings.Contains(err.Error(), "is not a valid number of template") {
			t.Errorf("after %s, %s makes %q, %v", test.wide, test.narrow, text, err)
		}
	}
}

func TestNumbersWithoutAPeriodRunOut(t *testing.T) {
	f := process(t, newStore(), numbering.Config{Template: "{n:1}", Time: newClock("2026-11-20T12:00:00Z")})
	if _, err := f.Reserve(context.Background(), 9); err != nil {
		t.Fatal(err)
	}
	_, err := f.Next(context.Background())
	if !errors.Is(err, numbering.ErrExhausted) || !strings.Contains(err.Error(), `"{n:1}" has 9 numbers in all: `) {
		t.Error(err)
	}
}

// A misconfigured process may retry for ever.
func TestATemplateThatDoesNotMatchTheCounterUsesNoNumbers(t *testing.T) {
	c := newClock("2026-11-20T12:00:00Z")
	for _, test := range []struct{ right, wrong, second string }{
		{"{yyyyMMdd}-{n:3}", "{yyyyMMdd}-{n:2}", "20261120-002"}, {"{n:3}", "{n:1}", "012"}, {"{yyyy}-{n:5}", "{yyyy}-{n:4}", "2026-00002"},
	} {
		s := newStore()
		right := process(t, s, numbering.Config{Template: test.right, Time: c})
		if test.right == "{n:3}" {
			if _, err := right.Reserve(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
		}
		next(t, right)
		for range 3 {
			wrong := process(t, s, numbering.Config{Template: test.wrong, Time: c})
			for range 3 {
				if text, err := wrong.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a valid number of template") {
					t.Errorf("after %s, %s makes %q, %v", test.right, test.wrong, text, err)
				}
			}
		}
		if text := next(t, right); text != test.second {
			t.Errorf("%s after tries of %s: %s, want %s", test.right, test.wrong, text, test.second)
		}
	}
}

// The first number takes a read and a write, the next one a write.
func TestCheckingTheCounterCostsNoExtraCalls(t *testing.T) {
	s := newStore()
	calls := 0
	s.Script = func(storetest.Call) storetest.Outcome {
		calls++
		return storetest.Pass
	}
	f := process(t, s, numbering.Config{Template: "{yyyyMMdd}-{n:3}", Time: newClock("2026-11-20T12:00:00Z")})
	for i, want := range []int{2, 3, 4} {
		if next(t, f); calls != want {
			t.Errorf("%d calls of the store for %d numbers, want %d", calls, i+1, want)
		}
	}
}

func TestAWiderTemplateMovesTheCounter(t *testing.T) {
	c := newClock("2026-11-20T12:00:00Z")
	s := newStore()
	narrow := process(t, s, numbering.Config{Template: "{yyyyMMdd}-{n:2}", Time: c})
	next(t, narrow)
	if text := next(t, process(t, s, numbering.Config{Template: "{yyyyMMdd}-{n:3}", Time: c})); text != "20261120-001" {
		t.Error(text)
	}
	if text, err := narrow.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a valid number of template") {
		t.Errorf("%s, %v", text, err)
	}
}
