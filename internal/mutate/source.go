package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A source is a parsed file. Mutants edit its text, not its tree, so that everything else stays
// unchanged, including comments and line numbers.
type source struct {
	name string // relative to the module, with slashes
	text []byte
	fset *token.FileSet
	file *ast.File
}

// A mutant is one small wrong change of a source.
type mutant struct {
	src       *source
	fn        string        // the function or declaration it is in
	within    *ast.FuncDecl // that function, nil for a declaration
	what      string        // one line
	line, col int
	nth       int // among the mutants at the same position, from 1
	edits     []edit
}

// An edit replaces the bytes [from, to) of a source.
type edit struct {
	from, to int
	text     string
}

// id names the mutant in this version of the file, as core.go:123:7 or core.go:123:7/2.
func (m mutant) id() string {
	id := m.place()
	if m.nth > 1 {
		id += fmt.Sprintf("/%d", m.nth)
	}
	return id
}

func (m mutant) place() string { return fmt.Sprintf("%s:%d:%d", m.src.name, m.line, m.col) }

// key identifies the mutant in later versions of the file as well: it has no line number.
func (m mutant) key() string { return m.src.name + " " + m.fn + ": " + m.what }

// apply returns text[from:to] with the edits within it.
func apply(text []byte, from, to int, edits []edit) string {
	var b strings.Builder
	for _, e := range edits {
		if e.from < from || e.to > to {
			continue
		}
		b.Write(text[from:e.from])
		b.WriteString(e.text)
		from = e.to
	}
	b.Write(text[from:to])
	return b.String()
}

// load parses the files that match comma-separated patterns, except tests.
func load(patterns string) ([]*source, error) {
	var all []*source
	for _, pattern := range strings.Split(patterns, ",") {
		names, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("-files: no file matches %q: run this in the folder of the module", pattern)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			s, err := parse(filepath.ToSlash(name), text)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	return all, nil
}

func parse(name string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	// Objects must be resolved: a mutant that evaluates a variable again needs its uses.
	file, err := parser.ParseFile(fset, name, text, 0)
	return &source{name: name, text: text, fset: fset, file: file}, err
}

func (s *source) at(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) of(n ast.Node) string { return string(s.text[s.at(n.Pos()):s.at(n.End())]) }

// mutants returns the mutants of a source in the order of their places.
func (s *source) mutants() []mutant {
	g := generator{source: s, known: map[string]bool{string(s.text): true}}
	ast.Inspect(s.file, g.visit)
	slices.SortStableFunc(g.found, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col))
	})
	places, keys := map[string]int{}, map[string]int{}
	for i := range g.found {
		m := &g.found[i]
		places[m.place()]++
		m.nth = places[m.place()]
		key := m.key()
		if keys[key]++; keys[key] > 1 {
			m.what += fmt.Sprintf(" (%d)", keys[key])
		}
	}
	return g.found
}
