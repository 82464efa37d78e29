package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sourceOf(t *testing.T, text string) *source {
	t.Helper()
	s, err := parse("toy.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Read the golden file: it shows what each construct of kinds.txt may become.
func TestEachConstructIsChangedInAllKnownWays(t *testing.T) {
	text, err := os.ReadFile("testdata/kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, m := range sourceOf(t, string(text)).mutants() {
		fmt.Fprintf(&got, "%s  %s: %s\n", m.id(), m.fn, m.what)
		if _, err := parse(m.id(), (group{m}).text()); err != nil {
			t.Errorf("%s is not Go: %v", m.what, err)
		}
	}
	const golden = "testdata/kinds.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the mutants are not those of %s; see git diff after go test -update:\n%s", golden, got.String())
	}
}

func TestAMutantKeepsItsKeyWhenLinesMove(t *testing.T) {
	const body = "func f(a, b int) bool { return a < b && a < b }\n"
	before, after := sourceOf(t, "package toy\n"+body).mutants(), sourceOf(t, "package toy\n\n// A comment.\n"+body).mutants()
	if len(before) == 0 || len(before) != len(after) {
		t.Fatalf("%d mutants and %d", len(before), len(after))
	}
	keys := map[string]bool{}
	for i := range before {
		if before[i].id() == after[i].id() || before[i].key() != after[i].key() {
			t.Errorf("%s %q became %s %q", before[i].id(), before[i].key(), after[i].id(), after[i].key())
		}
		if keys[before[i].key()] {
			t.Errorf("two mutants have the key %q", before[i].key())
		}
		keys[before[i].key()] = true
	}
}

// A function in a group does what its active mutant does; without one it does what the original does.
func TestAGroupHasEveryMutantAndTheOriginal(t *testing.T) {
	s := sourceOf(t, "package toy\n\nfunc (t *T[E]) sum(n int, more ...int) int { return n + more[0] }\nfunc stop() { halt(1) }\n")
	all := s.mutants()
	text := string(group(all).text())
	for _, want := range []string{
		"return n + more[0] }", "halt(1) }",
		"func (t *T[E]) sumMutant1(n int, more ...int) int", "case 1: return t.sumMutant1(n, more...);",
		fmt.Sprintf("case %d: stopMutant%d(); return;", len(all), len(all)),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	sourceOf(t, text)
}

func TestAMutantInAFunctionThatCannotCallACopyIsBuiltAlone(t *testing.T) {
	s := sourceOf(t, "package toy\nconst c = 5\nfunc init() { f(1) }\nfunc g[T any](n int) int { return n * 2 }\nfunc h(_ int) int { return 9 }\nfunc k(n int) int { return n * 2 }\n")
	for _, g := range groups(s.mutants()) {
		for _, m := range g {
			if (len(g) > 1) != (m.fn == "k") {
				t.Errorf("%s is built with %d others", m.key(), len(g)-1)
			}
		}
	}
}
