package cli

import (
	"strings"
	"testing"
	"time"
)

func TestProgressIsShownAfterASecondToAPerson(t *testing.T) {
	var out strings.Builder
	p := progress{out: &out, does: "took over", begun: time.Now(), shown: true}
	p.at(1, 2000)
	p.end()
	if out.Len() > 0 {
		t.Errorf("at once: %q", out.String())
	}
	p.begun = p.begun.Add(-time.Minute)
	p.at(1500, 2000)
	p.at(1501, 2000) // too soon again
	p.end()
	if want := "\rtook over 1,500 of 2,000 names\r\x1b[K"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	quiet := progress{out: &out, begun: p.begun}
	quiet.at(1, 2)
	quiet.end()
	if out.Len() > 0 {
		t.Errorf("to no person: %q", out.String())
	}
}
