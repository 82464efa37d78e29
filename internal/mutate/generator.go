package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A generator walks a source and collects its mutants. It does not know types: mutants that do not
// compile are dropped later.
type generator struct {
	*source
	found []mutant
	known map[string]bool // texts of the mutants so far
	path  []ast.Node      // from the file to the node visited
}

func (g *generator) visit(n ast.Node) bool {
	if n == nil {
		g.path = g.path[:len(g.path)-1]
		return true
	}
	if d, ok := n.(*ast.GenDecl); ok && (d.Tok == token.IMPORT || d.Tok == token.TYPE) {
		return false
	}
	if _, ok := n.(*ast.ArrayType); ok { // lengths of arrays are mostly padding
		return false
	}
	g.path = append(g.path, n)
	g.expression(n)
	g.statement(n)
	return true
}

// parent returns the node around the one visited.
func (g *generator) parent() ast.Node { return g.path[len(g.path)-2] }

func (g *generator) replace(n ast.Node, text string) edit {
	return edit{g.at(n.Pos()), g.at(n.End()), text}
}

func (g *generator) insert(p token.Pos, text string) edit {
	return edit{g.at(p), g.at(p), text}
}

// change adds the mutant with edits, described by the node around them before and after.
func (g *generator) change(around ast.Node, edits ...edit) {
	after := apply(g.text, g.at(around.Pos()), g.at(around.End()), edits)
	g.add(squeeze(g.of(around))+" -> "+squeeze(after), edits...)
}

// add adds the mutant with edits. The first edit is its position.
func (g *generator) add(what string, edits ...edit) {
	at := g.fset.Position(g.fset.File(g.file.Pos()).Pos(edits[0].from))
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	m := mutant{src: g.source, what: what, line: at.Line, col: at.Column, edits: edits}
	m.fn, m.within = g.where()
	text := string(group{m}.text())
	if !g.known[text] {
		g.known[text] = true
		g.found = append(g.found, m)
	}
}

// where returns the name of the visited declaration, and the function if it is one.
func (g *generator) where() (string, *ast.FuncDecl) {
	for _, n := range g.path {
		switch d := n.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || len(d.Recv.List) == 0 {
				return d.Name.Name, d
			}
			return strings.TrimPrefix(g.of(d.Recv.List[0].Type), "*") + "." + d.Name.Name, d
		case *ast.ValueSpec:
			return d.Names[0].Name, nil
		}
	}
	return "-", nil
}

// results returns the result types of the function around the visited node, one for each value.
func (g *generator) results() []ast.Expr {
	for _, n := range slices.Backward(g.path) {
		var t *ast.FuncType
		switch f := n.(type) {
		case *ast.FuncDecl:
			t = f.Type
		case *ast.FuncLit:
			t = f.Type
		default:
			continue
		}
		if t.Results == nil {
			return nil
		}
		var types []ast.Expr
		for _, field := range t.Results.List {
			for range max(1, len(field.Names)) {
				types = append(types, field.Type)
			}
		}
		return types
	}
	return nil
}

const widest = 90

// squeeze makes a text a single line and shortens it.
func squeeze(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return text
}
