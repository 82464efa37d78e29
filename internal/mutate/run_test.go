package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const toy = `package toy

// Clip returns n, at most 3.
func Clip(n int) int {
	if n > 3 {
		return 3
	}
	return n
}

// Sink returns 0.
func Sink(n int) int {
	for n > 0 {
		n--
	}
	return n
}
`

const toyTest = `package toy

import "testing"

func TestClip(t *testing.T) {
	if Clip(2) != 2 || Clip(5) != 3 || Sink(2) != 0 {
		t.Error("wrong")
	}
}
`

const toySurvivors = `toy.go Clip: n > 3 -> n >= 3
	equivalent: three is three either way
toy.go Clip: n > 3 -> n > 2
	equivalent: three is three either way
`

// inToy changes to the folder of the toy, and returns options that try it.
func inToy(t *testing.T, survivors string) options {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module toy\n\ngo 1.25.0\n", "toy.go": toy, "toy_test.go": toyTest,
		"plan.txt": "other.go\n\ttest ./other\n", "survivors.txt": survivors,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return options{files: "*.go", commands: "plan.txt", survivors: "survivors.txt", results: "results.jsonl", parallel: 2, slack: 2 * time.Second}
}

func TestMutantsAreKilledTimeOutAndSurvive(t *testing.T) {
	o := inToy(t, toySurvivors)
	var out strings.Builder
	err := o.run(context.Background(), &out)
	if err == nil {
		t.Errorf("there is no error, with survivors that are not listed:\n%s", &out)
	}
	for _, want := range []string{"toy.go Clip: n > 3 -> n > 4\n", "toy.go Sink: return n -> return *new(int)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the survivor %q is not reported:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "n > 3 -> n >= 3") {
		t.Errorf("a survivor that is listed is reported:\n%s", &out)
	}
	kept, err := os.ReadFile(o.results)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]fate{
		"toy.go Clip: if true: n \\u003e 3": killed, "toy.go Sink: removed: n--": timedOut, "toy.go Clip: n \\u003e 3 -\\u003e n \\u003e 4": survived,
	} {
		if !lineWith(string(kept), `"key":"`+key+`"`, `"fate":"`+string(want)+`"`) {
			t.Errorf("%s is not %s:\n%s", key, want, kept)
		}
	}
	if strings.Contains(string(kept), "n \\u003e= 3") {
		t.Errorf("a listed survivor was tried:\n%s", kept)
	}

	// Mutants in the results are not tried again, except survivors.
	var second strings.Builder
	begun := time.Now()
	if err := o.run(context.Background(), &second); err == nil {
		t.Error("no error the second time")
	}
	again, err := os.ReadFile(o.results)
	if err != nil {
		t.Fatal(err)
	}
	added, ok := strings.CutPrefix(string(again), string(kept))
	if !ok || strings.Count(added, "\n") != 2 || strings.Count(added, `"fate":"survived"`) != 2 {
		t.Errorf("after %v, results were added of more than the two survivors:\n%s", time.Since(begun), added)
	}
	table := func(s string) string {
		s, _, _ = strings.Cut(s, "of processors")
		return s[:strings.LastIndex(s, "\n")]
	}
	if table(second.String()) != table(out.String()) {
		t.Errorf("the second report is another:\n%s\n%s", &second, &out)
	}
}

func TestAListedSurvivorThatDoesNotExistIsAnError(t *testing.T) {
	const key = "toy.go Clip: n > 3 -> n > 5"
	o := inToy(t, key+"\n\tequivalent: it is not even a mutant\n")
	o.only = "toy.go:5:7"
	var out strings.Builder
	if err := o.run(context.Background(), &out); err == nil || !strings.Contains(out.String(), key+"  (there is no such mutant)") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestACommandThatFailsWithoutAMutantIsAnError(t *testing.T) {
	o := inToy(t, "")
	if err := os.WriteFile("toy_test.go", []byte(strings.ReplaceAll(toyTest, "!= 3", "!= 4")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.run(context.Background(), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "fails without a mutant") {
		t.Errorf("the error is %v", err)
	}
}

func lineWith(text string, parts ...string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}
