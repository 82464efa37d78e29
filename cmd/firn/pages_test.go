package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// TestThePagesSettingsAndCommandsAreRight reads the settings in pages, runs their commands of firn over a
// store of their own, and looks for targets of make and programs of other commands.
func TestThePagesSettingsAndCommandsAreRight(t *testing.T) {
	t.Setenv("ORDER_KEY", "1:00112233445566778899aabbccddeeff")
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	run, store := session(t), sqliteStore(t)
	if status, out := run(nil, "next", "--store", store); status != 0 { // a pool, as pages assume
		t.Fatal(out)
	}
	config := filepath.Join(t.TempDir(), "firn.yaml") // of which pages have parts
	if err := os.WriteFile(config, []byte("store: \""+store+"\"\nnamespaces: {items: {kind: segment}, txn: {kind: sequence}, bills: {kind: number, template: \"INV{yyyy}-{n:5}\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]int{"backup": 7, "capacity": 8, "clocks": 2, "compare": 3, "migrate-auto-increment": 1, "regions": 3, "runbooks": 2, "upgrade": 2} {
		checked := 0
		path := "docs/" + page + ".md"
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(string(text), "\n")
		for _, s := range snippets(t, path, title) {
			switch s.language {
			case "yaml":
				checked++
				file := filepath.Join(t.TempDir(), "firn.yaml")
				if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := settings.Read(file); err != nil {
					t.Errorf("%s: %v:\n%s", path, err, s.text)
				}
			case "sh":
				for line := range strings.Lines(s.text) {
					checked++
					line, _, _ = strings.Cut(line, "#")
					words := strings.Fields(strings.NewReplacer("redis://10.0.0.5:6379/0", store, "firn.yaml", config).Replace(line))
					switch words[0] {
					case "firn":
						if status, out := run(nil, words[1:]...); status != 0 || out == "" {
							t.Errorf("%s: %s exits with %d: %s", path, line, status, out)
						}
					case "make":
						if !strings.Contains(string(makefile), "\n"+words[1]+": ") {
							t.Errorf("%s: there is no target for %s", path, line)
						}
					case "go":
						at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "./") })
						file := map[string]string{"run": "main.go", "test": ""}[words[1]]
						if _, err := os.Stat(filepath.Join("..", "..", words[at], file)); err != nil {
							t.Errorf("%s: %s: %v", path, line, err)
						}
					default:
						t.Errorf("%s: %s is not run", path, line)
					}
				}
			}
		}
		if checked != want {
			t.Errorf("%s has %d settings and commands, want %d", path, checked, want)
		}
	}
}

// TestThePageAboutClocksNamesMetricsAndAlerts looks for them where they are defined.
func TestThePageAboutClocksNamesMetricsAndAlerts(t *testing.T) {
	text, err := os.ReadFile("../../docs/clocks.md")
	if err != nil {
		t.Fatal(err)
	}
	namesTheWatched(t, string(text), 8)
}

// TestTheRunbooksNameEachAlert compares the table of the page with the alerts, and looks for the metrics that it names.
func TestTheRunbooksNameEachAlert(t *testing.T) {
	page, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(filepath.Join(deploy, "prometheus-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	table, runbooks, _ := strings.Cut(string(page), "\n## ")
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1)
	for _, m := range alerts {
		if !strings.Contains(table, "`"+m[1]+"`") || !strings.Contains(runbooks, "`"+m[1]+"`") {
			t.Errorf("the table and a runbook must name %s", m[1])
		}
	}
	namesTheWatched(t, string(page), 2*len(alerts))
}

// namesTheWatched checks that a page names no other metrics and alerts than there are, and at least so many.
func namesTheWatched(t *testing.T, page string, least int) {
	t.Helper()
	watched := watched(t)
	names := regexp.MustCompile("`(Firn[A-Za-z]+|firn_[a-z_]+)`").FindAllStringSubmatch(page, -1)
	if len(names) < least {
		t.Errorf("the page names %d metrics and alerts", len(names))
	}
	for _, m := range names {
		if !isWatched(watched, m[1]) {
			t.Errorf("%s is neither an alert nor a metric of the dashboard", m[1])
		}
	}
}

// TestTheFiguresOfThePageAboutCapacityAreMeasured looks for each on a page with measurements or limits. What one core does
// is half of a figure there.
func TestTheFiguresOfThePageAboutCapacityAreMeasured(t *testing.T) {
	figures := func(text string) []string { return regexp.MustCompile(`\d+([.,]\d+)+`).FindAllString(text, -1) }
	read := func(page string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var measured []string
	for _, page := range []string{"benchmarks.md", "store-costs.md", "sequences.md", "segments.md", "concepts.md"} {
		measured = append(measured, figures(read(page))...)
	}
	page, _, _ := strings.Cut(strings.ReplaceAll(read("capacity.md"), "10.0.0.5", ""), "An example:")
	all := figures(page)
	if len(all) < 25 {
		t.Errorf("%d figures", len(all))
	}
	for _, f := range all {
		n, err := strconv.Atoi(strings.ReplaceAll(f, ",", ""))
		isHalf := err == nil && slices.ContainsFunc(measured, func(m string) bool { return strings.ReplaceAll(m, ",", "") == strconv.Itoa(2*n) })
		if !slices.Contains(measured, f) && !isHalf {
			t.Errorf("no page has %s", f)
		}
	}
}
