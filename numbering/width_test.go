package numbering_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/numbering"
)

// TestANarrowerTemplateOfOneCounterIsRefused: what a counter of wider numbers holds would be
// read as one of the year 20261.
func TestANarrowerTemplateOfOneCounterIsRefused(t *testing.T) {
	c := newClock("2026-11-20T12:00:00Z")
	for _, test := range []struct{ wide, narrow string }{
		{"{yyyy}-{n:5}", "{yyyy}-{n:4}"}, {"{yyyyMMdd}-{n:6}", "{yyyyMMdd}-{n:5}"}, {"{n:2}", "{n:1}"},
	} {
		s := newStore()
		wide := process(t, s, numbering.Config{Template: test.wide, Time: c})
		if _, err := wide.Take(context.Background(), 12); err != nil {
			t.Fatal(err)
		}
		text, err := process(t, s, numbering.Config{Template: test.narrow, Time: c}).Next(context.Background())
		if err == nil || !strings.Contains(err.Error(), "is no number of template") {
			t.Errorf("after %s, %s makes %q, %v", test.wide, test.narrow, text, err)
		}
	}
}

func TestNumbersThatNeverBeginAnewEnd(t *testing.T) {
	f := process(t, newStore(), numbering.Config{Template: "{n:1}", Time: newClock("2026-11-20T12:00:00Z")})
	if _, err := f.Take(context.Background(), 9); err != nil {
		t.Fatal(err)
	}
	_, err := f.Next(context.Background())
	if !errors.Is(err, numbering.ErrExhausted) || !strings.Contains(err.Error(), `"{n:1}" has 9 numbers in all: `) {
		t.Error(err)
	}
}
