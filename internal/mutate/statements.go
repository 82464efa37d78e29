package main

import (
	"go/ast"
	"go/token"
	"strings"
)

func (g *generator) statement(n ast.Node) {
	switch s := n.(type) {
	case *ast.IfStmt:
		g.condition("if", s.Cond)
		g.branches(s)
		g.again(s.Init, s.Cond, s.Body, s.Else)
	case *ast.ForStmt:
		if s.Cond != nil {
			g.force("for", s.Cond, false)
		}
		g.onlyOnce(s.Body)
	case *ast.RangeStmt:
		g.add("the loop has no iteration", g.insert(s.Body.Lbrace+1, "if true { break };"))
		g.onlyOnce(s.Body)
	case *ast.BlockStmt:
		g.list(s.List)
	case *ast.CaseClause:
		g.clause(s)
		g.list(s.Body)
	case *ast.CommClause:
		g.list(s.Body)
	case *ast.AssignStmt:
		g.operator(s, s.Tok, s.TokPos)
	case *ast.IncDecStmt:
		g.operator(s, s.Tok, s.TokPos)
	case *ast.BranchStmt:
		g.operator(s, s.Tok, s.TokPos)
	case *ast.ReturnStmt:
		g.returned(s)
	}
}

// condition forces a condition to true and false, and negates it. Comparisons are negated by another operator.
func (g *generator) condition(where string, cond ast.Expr) {
	g.force(where, cond, true)
	g.force(where, cond, false)
	switch c := cond.(type) {
	case *ast.UnaryExpr:
		return
	case *ast.BinaryExpr:
		if c.Op != token.LAND && c.Op != token.LOR {
			return
		}
	}
	g.add(where+" not: "+squeeze(g.of(cond)), g.insert(cond.Pos(), "!("), g.insert(cond.End(), ")"))
}

// force makes a condition always true or false. The condition is still evaluated: its variables stay
// used, and removing a call in it is a different mutant.
func (g *generator) force(where string, cond ast.Expr, to bool) {
	text, rest := "false", ") && false"
	if to {
		text, rest = "true", ") || true"
	}
	g.add(where+" "+text+": "+squeeze(g.of(cond)), g.insert(cond.Pos(), "("), g.insert(cond.End(), rest))
}

// branches empties the body and the else of an if that has both. Without an else, an empty body
// equals a condition that is false.
func (g *generator) branches(s *ast.IfStmt) {
	if s.Else == nil {
		return
	}
	g.empty("if "+squeeze(g.of(s.Cond)), s.Body)
	if other, ok := s.Else.(*ast.BlockStmt); ok {
		g.empty("the else of if "+squeeze(g.of(s.Cond)), other)
	}
}

func (g *generator) empty(what string, b *ast.BlockStmt) {
	if len(b.List) > 0 {
		g.add("empty: "+what, g.unused(b.List))
	}
}

// onlyOnce ends a loop after its first iteration.
func (g *generator) onlyOnce(b *ast.BlockStmt) {
	g.add("the loop ends after one iteration", g.insert(b.Rbrace, ";break\n"))
}

// clause forces the conditions of a switch without a tag, drops single values of one
// with a tag, and empties the body.
func (g *generator) clause(c *ast.CaseClause) {
	s, _ := g.path[len(g.path)-3].(*ast.SwitchStmt)
	head := squeeze(string(g.text[g.at(c.Pos()):g.at(c.Colon)]))
	for i, e := range c.List {
		switch {
		case s != nil && s.Tag == nil:
			g.condition("case", e)
		case len(c.List) > 1:
			g.add("without "+g.of(e)+" in "+head, g.without(c.List, i))
		}
	}
	if len(c.Body) > 0 {
		g.add("empty: "+head, g.unused(c.Body))
	}
}

// list removes statements one at a time, swaps neighbours and evaluates variables again.
func (g *generator) list(list []ast.Stmt) {
	alone := len(list) == 1 && g.wholeBody()
	for i, s := range list {
		if _, leaves := s.(*ast.ReturnStmt); !alone && (!leaves || i+1 < len(list)) {
			g.remove(s)
		}
		if i+1 < len(list) {
			g.swap(s, list[i+1])
		}
		rest := make([]ast.Node, 0, len(list))
		for _, after := range list[i+1:] {
			rest = append(rest, after)
		}
		g.again(s, rest...)
	}
}

// wholeBody reports whether other mutants empty the visited list.
func (g *generator) wholeBody() bool {
	switch g.parent().(type) {
	case *ast.IfStmt, *ast.RangeStmt:
		return true
	}
	_, clause := g.path[len(g.path)-1].(*ast.CaseClause)
	return clause
}

// remove drops a statement. The variables it reads stay used, so that the mutant compiles.
func (g *generator) remove(s ast.Stmt) {
	if locks(s) {
		return
	}
	what := "removed: " + squeeze(g.of(s))
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return
		}
		for _, to := range s.Lhs {
			if g.of(to) == "_" {
				continue
			}
			what := "not assigned: " + g.of(to) + " of " + squeeze(g.of(s))
			g.add(what, g.replace(to, "_"), edit{g.at(s.TokPos), g.at(s.TokPos) + len(s.Tok.String()), "="})
		}
	case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.ReturnStmt, *ast.BranchStmt:
		g.add(what, g.unused([]ast.Stmt{s}))
	}
}

// unused makes statements compile but never run.
func (g *generator) unused(list []ast.Stmt) edit {
	from, to := g.at(list[0].Pos()), g.at(list[len(list)-1].End())
	return edit{from, to, "if false { " + string(g.text[from:to]) + "\n}"}
}

// locks reports whether a statement locks or unlocks a mutex. The race detector, or a test that hangs,
// finds such mistakes.
func locks(s ast.Stmt) bool {
	var call ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		call = s.X
	case *ast.DeferStmt:
		call = s.Call
	}
	c, ok := call.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := c.Fun.(*ast.SelectorExpr)
	return ok && strings.HasSuffix(strings.ToLower(method.Sel.Name), "lock")
}

// swap exchanges neighbouring statements if one may depend on the other.
func (g *generator) swap(a, b ast.Stmt) {
	if locks(a) || locks(b) || !g.depend(a, b) {
		return
	}
	g.add("swapped: "+squeeze(g.of(a))+" <-> "+squeeze(g.of(b)), g.replace(a, g.of(b)), g.replace(b, g.of(a)))
}

func (g *generator) depend(a, b ast.Stmt) bool {
	changed := func(s ast.Stmt) (paths []string, call, plain bool) {
		switch s := s.(type) {
		case *ast.ExprStmt:
			return nil, true, true
		case *ast.IncDecStmt:
			return []string{g.of(s.X)}, false, true
		case *ast.AssignStmt:
			for _, to := range s.Lhs {
				paths = append(paths, g.of(to))
			}
			return paths, false, s.Tok != token.DEFINE
		default:
			return nil, false, false
		}
	}
	pathsA, callA, plainA := changed(a)
	pathsB, callB, plainB := changed(b)
	if !plainA || !plainB {
		return false
	}
	names := func(s ast.Stmt, paths []string) bool {
		for _, p := range paths {
			if p != "_" && strings.Contains(g.of(s), p) {
				return true
			}
		}
		return false
	}
	return callA || callB || names(a, pathsB) || names(b, pathsA)
}

// again evaluates a call without arguments at each use of the variable with its result, when the
// result may differ.
func (g *generator) again(s ast.Stmt, rest ...ast.Node) {
	d, ok := s.(*ast.AssignStmt)
	if !ok || d.Tok != token.DEFINE || len(d.Lhs) != 1 || len(d.Rhs) != 1 {
		return
	}
	call, ok := d.Rhs[0].(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return
	}
	edits := []edit{{g.at(d.Pos()), g.at(call.Pos()), "_ = "}}
	for _, n := range rest {
		if n == nil {
			continue
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if use, ok := n.(*ast.Ident); ok && use.Obj != nil && use.Obj.Decl == ast.Node(d) {
				edits = append(edits, g.replace(use, g.of(call)))
			}
			return true
		})
	}
	if len(edits) > 1 {
		g.add("evaluated again at each use: "+squeeze(g.of(d)), edits...)
	}
}

// returned changes what a function returns: errors to nil and nil to an error, booleans to the
// opposite, other values to zero or by one.
func (g *generator) returned(s *ast.ReturnStmt) {
	types := g.results()
	if len(types) != len(s.Results) { // a call that returns them all
		return
	}
	for i, value := range s.Results {
		text := g.of(value)
		switch t := g.of(types[i]); {
		case text == "true" || text == "false": // flipped as any such word
		case t == "error" && text == "nil":
			g.change(s, g.replace(value, "mutantError{}"))
		case t == "error":
			g.change(s, g.replace(value, "nil"))
		case t == "bool":
			g.change(s, g.replace(value, "!("+text+")"))
		default:
			g.value(s, value, t)
		}
	}
}

func (g *generator) value(s *ast.ReturnStmt, value ast.Expr, t string) {
	switch v := value.(type) {
	case *ast.BasicLit:
		return
	case *ast.CompositeLit:
		if len(v.Elts) == 0 {
			return
		}
	case *ast.Ident:
		if v.Name == "nil" {
			return
		}
	}
	g.change(s, g.replace(value, "*new("+t+")"))
	if isNumber(t) {
		g.change(s, g.replace(value, "("+g.of(value)+") + 1"))
		g.change(s, g.replace(value, "("+g.of(value)+") - 1"))
	}
}

// isNumber reports whether a type may be numeric: a plain name other than string.
func isNumber(t string) bool {
	return t != "string" && t != "any" && !strings.ContainsAny(t, "*[]{}( ")
}
