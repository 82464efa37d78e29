package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// A group is the mutants of a source that are built together, since building a mutant takes longer
// than running it. Each mutant is a copy of its function. The function begins with a switch that calls
// the copy chosen by the variable mutantOn, which is 1 for the first.
type group []mutant

// support is the file added to the package with a group.
const support = `
import (
	"os"
	"strconv"
)

var mutantOn, _ = strconv.Atoi(os.Getenv(` + "`" + chooses + "`" + `))

type mutantError struct{}

func (mutantError) Error() string { return "mutant" }
`

// chooses is the environment variable with the number of the active mutant of a group; 0: no mutant.
const chooses = "FIRN_MUTANT"

// groups returns one group with all mutants in functions that can call a copy of themselves, and a
// group for each other mutant.
func groups(all []mutant) []group {
	var joint group
	var single []group
	for _, m := range all {
		if m.within != nil && callable(m.within) {
			joint = append(joint, m)
		} else {
			single = append(single, group{m})
		}
	}
	if len(joint) > 0 {
		single = append(single, joint)
	}
	return single
}

// callable reports whether a function can pass all its arguments to a copy.
func callable(f *ast.FuncDecl) bool {
	fields := f.Type.Params.List
	if f.Recv != nil {
		fields = slices.Concat(fields, f.Recv.List)
	}
	for _, field := range fields {
		if len(field.Names) == 0 || slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == "_" }) {
			return false
		}
	}
	return f.Type.TypeParams == nil && f.Name.Name != "init"
}

// text returns the source with the group in it.
func (g group) text() []byte {
	if m := g[0]; len(g) == 1 {
		return []byte(apply(m.src.text, 0, len(m.src.text), m.edits))
	}
	src := g[0].src
	var copies strings.Builder
	calls := map[*ast.FuncDecl]string{}
	for i, m := range g {
		f := m.within
		name := m.copied(i)
		calls[f] += fmt.Sprintf("case %d: %s; ", i+1, src.call(f, name))
		from, to := src.at(f.Name.Pos()), src.at(f.End())
		fmt.Fprintf(&copies, "\n%s%s%s\n", src.text[src.at(f.Pos()):from], name,
			apply(src.text, src.at(f.Name.End()), to, m.edits))
	}
	var edits []edit
	for f, cases := range calls {
		at := src.at(f.Body.Lbrace) + 1
		edits = append(edits, edit{at, at, " switch mutantOn { " + cases + "};"})
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	return []byte(apply(src.text, 0, len(src.text), edits) + copies.String())
}

// copied returns the name of the copy for mutant i of a group, from 0.
func (m mutant) copied(i int) string { return fmt.Sprintf("%sMutant%d", m.within.Name.Name, i+1) }

// call returns the statement with which f returns what its copy returns.
func (s *source) call(f *ast.FuncDecl, name string) string {
	var args []string
	for _, field := range f.Type.Params.List {
		for _, n := range field.Names {
			arg := n.Name
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if f.Recv != nil {
		call = f.Recv.List[0].Names[0].Name + "." + call
	}
	if f.Type.Results == nil {
		return call + "; return"
	}
	return "return " + call
}
