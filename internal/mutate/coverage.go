package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A coverage lists the tests of a command with the blocks of a package that each of them runs. A mutant is then tried by
// the tests that reach it, which takes a small part of the time. A test that reaches it only by chance may be missed: then
// a mutant survives that might have been killed, and is reported.
type coverage []reach

// A reach is what one test runs.
type reach struct {
	test   string
	took   time.Duration
	blocks []block
}

// A block is a part of a file without branches.
type block struct {
	file     string // without its folder
	from, to place
}

// A place is a position in a file.
type place struct{ line, col int }

func (p place) before(q place) bool { return p.line < q.line || p.line == q.line && p.col < q.col }

// tests returns the tests that reach a mutant, and whether that is known: blocks have no declarations, and no conditions
// of a case, which count as reached wherever their function is.
func (c coverage) tests(m mutant) (found []reach, known bool) {
	if m.within == nil {
		return nil, false
	}
	from := m.src.fset.Position(m.within.Body.Pos())
	to := m.src.fset.Position(m.within.End())
	body := block{path.Base(m.src.name), place{from.Line, from.Column}, place{to.Line, to.Column}}
	at := place{m.line, m.col}
	var function []reach
	for _, r := range c {
		in := func(yes func(block) bool) bool {
			return slices.ContainsFunc(r.blocks, func(b block) bool { return b.file == body.file && yes(b) })
		}
		if in(func(b block) bool { return !b.from.before(body.from) && !body.to.before(b.to) }) {
			function = append(function, r)
			if in(func(b block) bool { return !at.before(b.from) && at.before(b.to) }) {
				found = append(found, r)
			}
		}
	}
	if found == nil {
		return function, true
	}
	return found, true
}

// cover runs each test of a command by itself, to see which parts of a folder it reaches.
func (b *bench) cover(ctx context.Context, c command, folder string) (coverage, error) {
	dir, err := os.MkdirTemp(b.dir, "cover")
	if err != nil {
		return nil, err
	}
	file, profile := filepath.Join(dir, "binary"), filepath.Join(dir, "profile")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-cover", "-coverpkg=./"+folder, "-o", file, c.pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s, for its coverage: %w\n%s", c, err, out)
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, file, append(args, "-test.short")...)
		cmd.Dir = filepath.Join(b.module, filepath.FromSlash(c.pkg))
		return cmd.CombinedOutput()
	}
	skip := "^$"
	for _, arg := range c.args {
		skip = strings.TrimPrefix(arg, "-test.skip=")
	}
	skipped, err := regexp.Compile(skip)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	list, err := run("-test.list=.")
	if err != nil {
		return nil, fmt.Errorf("%s, for its tests: %w\n%s", c, err, list)
	}
	var all coverage
	for _, name := range strings.Fields(string(list)) {
		if skipped.MatchString(name) {
			continue
		}
		began := time.Now()
		out, err := run("-test.run=^"+name+"$", "-test.coverprofile="+profile)
		took := time.Since(began)
		if err != nil {
			return nil, fmt.Errorf("%s of %s fails without a mutant: %w\n%s", name, c, err, out)
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		blocks, err := readProfile(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, c, err)
		}
		all = append(all, reach{name, took, blocks})
	}
	return all, nil
}

// readProfile returns the blocks that were run, of lines such as "example.com/m/lease/claim.go:12.34,15.2 3 1".
func readProfile(text string) (blocks []block, err error) {
	_, text, found := strings.Cut(text, "\n") // the mode
	if !found {
		return nil, errors.New("its coverage profile is empty")
	}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		var b block
		var statements, times int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.col, &b.to.line, &b.to.col, &statements, &times); err != nil {
			return nil, fmt.Errorf("a line of its coverage profile is %q: %w", line, err)
		}
		if b.file = path.Base(name); times > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}
