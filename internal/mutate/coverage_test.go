package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
)

const choosing = `package toy

const three = 3

// Choose returns 1 for three, 2 for other odd numbers, else 0.
func Choose(n int) int {
	switch {
	case n == three:
		return 1
	case n%2 == 1:
		return 2
	}
	return 0
}
`

const choosingTest = `package toy

import "testing"

func TestThree(t *testing.T) { is(t, 3, 1) }

func TestOdd(t *testing.T) { is(t, 5, 2) }

func TestEven(t *testing.T) { is(t, 4, 0) }

func TestSkipped(t *testing.T) { is(t, 6, 0) }

func TestNothing(*testing.T) {}

func is(t *testing.T, n, want int) {
	if got := Choose(n); got != want {
		t.Error(n, got, want)
	}
}
`

func TestAMutantIsTriedByTheTestsThatReachIt(t *testing.T) {
	inToy(t, "")
	for name, text := range map[string]string{"toy.go": choosing, "toy_test.go": choosingTest} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	module, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	b := bench{dir: t.TempDir(), module: module, covered: map[string]coverage{}, tests: map[string][]string{}}
	sources, err := load("toy.go")
	if err != nil {
		t.Fatal(err)
	}
	const odd = "toy.go:10:7"
	want := map[string][]string{
		"toy.go:9:3":  {"TestThree"},
		"toy.go:11:3": {"TestOdd"},
		odd:           {"TestEven", "TestOdd", "TestThree"}, // a condition is in no block
		"toy.go:13:9": {"TestEven"},
	}
	c := command{test: true, pkg: ".", args: []string{"-test.skip=Skip"}}
	tried := map[string]bool{}
	for _, m := range sources[0].mutants() {
		commands, err := b.narrowed(context.Background(), c, m)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, narrow := range commands {
			tests := strings.TrimSuffix(strings.TrimPrefix(strings.Join(narrow.args[1:], ""), "-test.run=^("), ")$")
			got = append(got, strings.FieldsFunc(tests, func(c rune) bool { return c == '|' })...)
		}
		slices.Sort(got)
		if wanted, ok := want[m.place()]; ok && !slices.Equal(got, wanted) || m.within == nil && (len(commands) != 1 || got != nil) {
			t.Errorf("%s is tried by %q, want %q", m.id(), got, wanted)
		}
		tried[m.place()] = true
	}
	for place := range want {
		if !tried[place] {
			t.Errorf("there is no mutant at %s", place)
		}
	}
}
