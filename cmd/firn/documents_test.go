package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestTheReadmesCommandsWork runs the commands that need no server.
func TestTheReadmesCommandsWork(t *testing.T) {
	r := newReader(t)
	first, _, _ := strings.Cut(snippets(t, "README.md", "# Firn")[0].text, "\n")
	out := r.types(snippet{"README.md", "sh", first})
	newIDs(t, snippet{"README.md", "sh", first}, out, 5, map[string]bool{})

	commands := snippets(t, "README.md", "## On the command line")[0]
	for _, line := range strings.Split(strings.TrimSpace(commands.text), "\n") {
		if out := r.types(snippet{commands.at, "sh", line}); out == "" && !strings.Contains(line, " > ") {
			t.Errorf("%s prints nothing", line)
		}
	}
	if out := r.types(snippet{commands.at, "sh", "wc -l < ids.txt"}); strings.TrimSpace(out) != "1000000" {
		t.Errorf("ids.txt has %s lines", out)
	}
}

// TestTheReadmesGoProgramPrintsAnID runs the program unchanged.
func TestTheReadmesGoProgramPrintsAnID(t *testing.T) {
	s := snippets(t, "README.md", "## In a Go program")[0]
	out := strings.TrimSuffix(strings.TrimSpace(newReader(t).types(s)), " <nil>")
	newIDs(t, s, out, 1, map[string]bool{})
}

// TestTheProgramsOfTheRedisPagePrintIDs runs the complete programs of the page, and its session.
func TestTheProgramsOfTheRedisPagePrintIDs(t *testing.T) {
	r := newReader(t)
	r.serve("firn serve")
	had := map[string]bool{}
	run := 0
	for _, s := range snippets(t, "docs/redis.md", "## From your language") {
		if s.language != "java" { // its library is not in a registry that tests use
			newIDs(t, s, r.types(s), 4, had)
			run++
		}
	}
	if run != 4 {
		t.Errorf("%d programs were run, want 4", run)
	}
	for _, s := range snippets(t, "docs/redis.md", "# The Redis protocol") {
		if s.language != "console" {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^\$ (redis-cli .*)$`).FindAllStringSubmatch(s.text, -1) {
			count := 1
			if strings.Contains(m[1], "COUNT 3") {
				count = 3
			}
			newIDs(t, s, r.types(snippet{s.at, "sh", m[1]}), count, had)
		}
	}
}

// TestTheExamplesOfTheRPCPageWork runs the examples under "Try it".
func TestTheExamplesOfTheRPCPageWork(t *testing.T) {
	r := newReader(t)
	r.serve("firn serve")
	had := map[string]bool{}
	joined := strings.NewReplacer("\\\n", " ", "firn serve &\n", "")
	answered := map[string]int{}
	for _, s := range snippets(t, "docs/rpc.md", "## Try it") {
		switch {
		case s.language == "go":
			newIDs(t, s, r.types(s), 3, had)
			answered["go"]++
			continue
		case s.language != "sh" || strings.Contains(s.text, "grpc_tools"): // Debian does not have grpc_tools
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(joined.Replace(s.text)), "\n") {
			out := r.types(snippet{s.at, "sh", line})
			switch program, _, _ := strings.Cut(line, " "); {
			case strings.Contains(line, `"count":3`):
				newIDs(t, s, out, 3, had)
				answered[program]++
			case strings.Contains(line, "Health/Check") && !strings.Contains(out, `"SERVING"`),
				strings.HasSuffix(line, " list") && !strings.Contains(out, "firn.v1.IDService"),
				strings.Contains(line, "GenerateStream") && !strings.Contains(out, `"runs"`):
				t.Errorf("%s: %s", line, out)
			}
		}
	}
	if answered["curl"] != 1 || answered["grpcurl"] != 1 || answered["go"] != 2 {
		t.Errorf("examples that printed ids: %v", answered)
	}
}

// TestTheRehearsalOfTheCommandLinePageIsReal runs its command and compares what it prints.
func TestTheRehearsalOfTheCommandLinePageIsReal(t *testing.T) {
	blocks := snippets(t, "docs/cli.md", "## Rehearsing a clock")
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	if out := newReader(t).types(blocks[0]); strings.TrimSpace(out) != strings.TrimSpace(blocks[1].text) {
		t.Errorf("it prints\n%s\nthe page says\n%s", out, blocks[1].text)
	}
}
