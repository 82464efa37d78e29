package main

import (
	"go/ast"
	"go/token"
	"strconv"
)

// others has the operators that replace an operator.
var others = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.SHL: {">>"}, token.SHR: {"<<"}, token.AND: {"|"}, token.OR: {"&"}, token.XOR: {"&"}, token.AND_NOT: {"&"},
	token.ADD_ASSIGN: {"-="}, token.SUB_ASSIGN: {"+="}, token.MUL_ASSIGN: {"/="}, token.QUO_ASSIGN: {"*="},
	token.SHL_ASSIGN: {">>="}, token.SHR_ASSIGN: {"<<="}, token.AND_ASSIGN: {"|="}, token.OR_ASSIGN: {"&="},
	token.INC: {"--"}, token.DEC: {"++"},
	token.BREAK: {"continue"}, token.CONTINUE: {"break"},
}

// operator replaces the operator at pos, which belongs to around, by others.
func (g *generator) operator(around ast.Node, op token.Token, pos token.Pos) {
	for _, other := range others[op] {
		g.change(around, edit{g.at(pos), g.at(pos) + len(op.String()), other})
	}
}

func (g *generator) expression(n ast.Node) {
	switch e := n.(type) {
	case *ast.BinaryExpr:
		g.operator(e, e.Op, e.OpPos)
		if e.Op == token.LAND || e.Op == token.LOR {
			g.change(e, edit{g.at(e.X.Pos()), g.at(e.Y.Pos()), ""})
			g.change(e, edit{g.at(e.X.End()), g.at(e.Y.End()), ""})
		}
	case *ast.UnaryExpr:
		if _, literal := e.X.(*ast.BasicLit); (e.Op == token.SUB && !literal) || e.Op == token.NOT {
			g.change(e, edit{g.at(e.Pos()), g.at(e.X.Pos()), ""})
		}
	case *ast.BasicLit:
		g.number(e)
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[e.Name]; ok && e.Obj == nil {
			g.change(g.around(), g.replace(e, other))
		}
	case *ast.CallExpr:
		g.extreme(e)
	case *ast.CompositeLit:
		g.literal(e)
	}
}

// around returns the expression or statement around the visited leaf, which describes a change of it.
func (g *generator) around() ast.Node {
	switch p := g.parent().(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CompositeLit, *ast.FuncDecl, *ast.FuncLit, *ast.IfStmt, *ast.ForStmt:
		return g.path[len(g.path)-1]
	default:
		return p
	}
}

// number changes a whole number by one.
func (g *generator) number(e *ast.BasicLit) {
	n, err := strconv.ParseInt(e.Value, 0, 64)
	if e.Kind != token.INT || err != nil {
		return
	}
	for _, other := range []int64{n + 1, n - 1} {
		g.change(g.around(), g.replace(e, strconv.FormatInt(other, 10)))
	}
}

// extreme swaps min and max, and drops each of their arguments.
func (g *generator) extreme(e *ast.CallExpr) {
	name, ok := e.Fun.(*ast.Ident)
	other, swaps := map[string]string{"min": "max", "max": "min"}[g.of(e.Fun)]
	if !ok || !swaps {
		return
	}
	g.change(e, g.replace(name, other))
	for i := range e.Args {
		g.change(e, g.without(e.Args, i))
	}
}

// literal drops each named field of a composite literal.
func (g *generator) literal(e *ast.CompositeLit) {
	for i, element := range e.Elts {
		if _, keyed := element.(*ast.KeyValueExpr); keyed {
			g.add("without "+squeeze(g.of(element)), g.without(e.Elts, i))
		}
	}
}

// without removes an element of a list, and the comma beside it.
func (g *generator) without(list []ast.Expr, i int) edit {
	switch {
	case i+1 < len(list):
		return edit{g.at(list[i].Pos()), g.at(list[i+1].Pos()), ""}
	case i > 0:
		return edit{g.at(list[i-1].End()), g.at(list[i].End()), ""}
	default: // alone: a comma after it may stay only where an element stands
		to := g.at(list[i].End())
		if g.text[to] == ',' {
			to++
		}
		return edit{g.at(list[i].Pos()), to, ""}
	}
}
