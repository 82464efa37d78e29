package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAPlanGivesTheCommandsOfTheFirstPatternThatMatches(t *testing.T) {
	p, err := readPlan(written(t, "# a comment\nlease/*.go\n\ttest ./lease\n\trun ./search -seeds 4\n\nlease/claim.go\n\ttest ./other\n"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"lease/claim.go": "test ./lease, run ./search -seeds 4",
		"store/store.go": "test ./store",
		"core.go":        "test ./.",
	} {
		var got []string
		for _, c := range p.of(file) {
			got = append(got, c.String())
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, not %s", file, text, want)
		}
	}
}

func TestListsThatAreWrongAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\ttest .\n":                           "must follow a line",
		"core.go\n\tlint .\n":                  "a command is test PACKAGE",
		"core.go\n\ttest\n":                    "a command is test PACKAGE",
		"[\n\ttest .\n":                        "syntax error in pattern",
		"core.go f: a -> b\n":                  "",
		"core.go f: a\n\tx\ncore.go f: a\n\ty": "",
	} {
		if _, err := readPlan(written(t, text)); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("plan %q: %v, not %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"core.go f: a -> b\n":                  "no reason below",
		"core.go f: a\n\tx\ncore.go f: a\n\ty": "is listed twice",
	} {
		if _, err := readSurvivors(written(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("survivors %q: %v, not %q", text, err, want)
		}
	}
}

// The lists of the repository name only existing files.
func TestTheListsOfTheRepositoryAreRead(t *testing.T) {
	p, err := readPlan("plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p {
		if files, err := filepath.Glob(filepath.Join("../..", step.pattern)); err != nil || len(files) == 0 {
			t.Errorf("plan.txt: no file matches %s", step.pattern)
		}
	}
	known, err := readSurvivors("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for key := range known {
		name, _, _ := strings.Cut(key, " ")
		if there[name] {
			continue
		}
		there[name] = true
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatalf("survivors.txt: %v", err)
		}
		s, err := parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, m := range s.mutants() {
			keys = append(keys, m.key())
		}
		for key := range known {
			if strings.HasPrefix(key, name+" ") && !slices.Contains(keys, key) {
				t.Errorf("survivors.txt: there is no such mutant: %s", key)
			}
		}
	}
}
