package main

import (
	"fmt"
	"os"
	"path"
	"strings"
)

// An entry is a line of a list and the indented lines below it. Empty lines and those
// that begin with # are comments.
type entry struct {
	head string
	body []string
}

func readList(file string) ([]entry, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []entry
	for i, line := range strings.Split(string(text), "\n") {
		content := strings.TrimSpace(line)
		switch {
		case content == "" || line[0] == '#':
		case line[0] != '\t' && line[0] != ' ':
			list = append(list, entry{head: content})
		case len(list) == 0:
			return nil, fmt.Errorf("%s:%d: an indented line must follow a line that is not indented", file, i+1)
		default:
			last := &list[len(list)-1]
			last.body = append(last.body, content)
		}
	}
	return list, nil
}

// A command tests mutants: the tests of a package, or a program that must exit with status 0.
type command struct {
	test bool
	pkg  string
	args []string
}

func (c command) String() string {
	verb := "run"
	if c.test {
		verb = "test"
	}
	return strings.Join(append([]string{verb, c.pkg}, c.args...), " ")
}

// A plan lists the commands that try the mutants of a file, the cheapest first.
type plan []step

type step struct {
	pattern  string
	commands []command
}

func readPlan(file string) (plan, error) {
	list, err := readList(file)
	if err != nil {
		return nil, err
	}
	var p plan
	for _, e := range list {
		s := step{pattern: e.head}
		if _, err := path.Match(e.head, ""); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, e.head, err)
		}
		for _, line := range e.body {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "test" && words[0] != "run" {
				return nil, fmt.Errorf("%s: %q: a command is test PACKAGE FLAGS or run PACKAGE FLAGS", file, line)
			}
			s.commands = append(s.commands, command{words[0] == "test", words[1], words[2:]})
		}
		p = append(p, s)
	}
	return p, nil
}

// of returns the commands for a file: those of the first pattern that matches, otherwise the tests
// of its package.
func (p plan) of(file string) []command {
	for _, s := range p {
		if ok, _ := path.Match(s.pattern, file); ok {
			return s.commands
		}
	}
	return []command{{test: true, pkg: "./" + path.Dir(file)}}
}

// readSurvivors returns the reasons of the known survivors, by key.
func readSurvivors(file string) (map[string]string, error) {
	list, err := readList(file)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, e := range list {
		if len(e.body) == 0 {
			return nil, fmt.Errorf("%s: no reason below %q", file, e.head)
		}
		if _, twice := known[e.head]; twice {
			return nil, fmt.Errorf("%s: %q is listed twice", file, e.head)
		}
		known[e.head] = strings.Join(e.body, " ")
	}
	return known, nil
}
