package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// decimals matches numbers as long as ids of the layout firn, outside other words.
var decimals = regexp.MustCompile(`\b\d{15,19}\b`)

// newIDs checks that a snippet printed count ids that are recent and not in before, and adds them.
func newIDs(t *testing.T, s snippet, printed string, count int, before map[string]bool) {
	t.Helper()
	ids := decimals.FindAllString(printed, -1)
	if len(ids) != count {
		t.Errorf("%s, %s: %d ids, want %d: %s", s.at, s.language, len(ids), count, printed)
	}
	for _, text := range ids {
		id, err := firn.ParseID(text)
		if err != nil {
			t.Errorf("%s, %s: %v", s.at, s.language, err)
			continue
		}
		if made := id.Time(firn.DefaultLayout()); time.Since(made).Abs() > time.Hour || before[text] {
			t.Errorf("%s, %s: id %s of %v, seen before: %t", s.at, s.language, text, made, before[text])
		}
		before[text] = true
	}
}

// TestTheReadmesProgramsPrintIDs starts the server as in the README, and runs the README's programs
// and commands, unchanged except for the port.
func TestTheReadmesProgramsPrintIDs(t *testing.T) {
	blocks := snippets(t, "README.md", "## As a server")
	r := newReader(t)
	r.serve(blocks[0].text)
	had := map[string]bool{}
	languages := map[string]int{}
	for _, s := range blocks[1:] {
		languages[s.language]++
		switch s.language {
		case "json":
		case "sh":
			out := r.types(s)
			answer, rest, _ := strings.Cut(out, "\n")
			newIDs(t, s, answer, 3, had)
			if !strings.Contains(rest, `"time":"2026-11-20T23:43:30.062Z"`) || !strings.Contains(rest, "POST /v1/ids/{namespace}") {
				t.Errorf("%s prints %s", s.text, out)
			}
		default:
			t.Run(s.language, func(t *testing.T) {
				within := *r
				within.t = t
				newIDs(t, s, within.types(s), 3, had)
			})
		}
	}
	for _, language := range []string{"sh", "python", "js", "java", "php", "go"} {
		if languages[language] != 1 {
			t.Errorf("the README has %d programs in %s under %q", languages[language], language, "## As a server")
		}
	}
	out := r.types(snippet{"README.md", "sh", "redis-cli -p 7071 INCR orders\n"})
	newIDs(t, snippet{"README.md", "redis-cli", ""}, out, 1, had)
	if status, help := session(t)([]string{"HOME=/"}, "serve", "--help"); status != 0 ||
		!strings.Contains(help, `(default "127.0.0.1:7070")`) || !strings.Contains(help, `(default "127.0.0.1:7071")`) ||
		!strings.Contains(help, `(default "127.0.0.1:7072")`) {
		t.Errorf("the README's addresses are not the default: %s", help)
	}
}
