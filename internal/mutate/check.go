package main

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
)

// A checker finds out which mutants of one source compile.
type checker struct {
	src     *source
	fset    *token.FileSet
	others  []*ast.File // of the package, without the bodies of functions
	imports types.Importer
}

func newChecker(src *source) (*checker, error) {
	c := &checker{src: src, fset: token.NewFileSet()}
	c.imports = importer.ForCompiler(c.fset, "source", nil)
	folder := filepath.FromSlash(path.Dir(src.name))
	pkg, err := build.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	for _, name := range pkg.GoFiles {
		if name == path.Base(src.name) {
			continue
		}
		file, err := parser.ParseFile(c.fset, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Type.TypeParams == nil {
				f.Body = nil
			}
		}
		c.others = append(c.others, file)
	}
	file, err := parser.ParseFile(c.fset, "support.go", "package "+src.file.Name.Name+support, 0)
	c.others = append(c.others, file)
	return c, err
}

// compile returns the mutants that compile. It checks a group at once: the position of an error shows
// which mutant it belongs to.
func (c *checker) compile(all []mutant) (good []mutant) {
	for _, g := range groups(slices.DeleteFunc(all, func(m mutant) bool { return !parses(m) })) {
		file, wrong := c.errors(g)
		if len(g) == 1 && len(wrong) > 0 {
			continue
		}
		bad := map[string]bool{}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && slices.ContainsFunc(wrong, func(at token.Pos) bool { return f.Pos() <= at && at <= f.End() }) {
				bad[f.Name.Name] = true
			}
		}
		for i, m := range g {
			if len(g) == 1 || !bad[m.copied(i)] {
				good = append(good, m)
			}
		}
	}
	return good
}

func parses(m mutant) bool {
	_, err := parse(m.src.name, group{m}.text())
	return err == nil
}

// errors returns the positions of the errors in a group. Errors in other files come from the removed
// function bodies, so they do not count.
func (c *checker) errors(g group) (file *ast.File, wrong []token.Pos) {
	const name = "mutants"
	file, err := parser.ParseFile(c.fset, name, g.text(), parser.SkipObjectResolution)
	if err != nil { // each of them has been parsed
		panic(err)
	}
	config := types.Config{Importer: c.imports, Error: func(err error) {
		if e, ok := err.(types.Error); ok && c.fset.Position(e.Pos).Filename == name { //nolint:errorlint // the package hands over the error itself
			wrong = append(wrong, e.Pos)
		}
	}}
	config.Check(c.src.file.Name.Name, c.fset, append([]*ast.File{file}, c.others...), nil) //nolint:errcheck // Error has had them all
	return file, wrong
}
