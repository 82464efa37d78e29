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
)

// A checker tells whether mutants of one source compile.
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

// compiles reports whether a mutant does. What is wrong in the other files comes of the
// missing bodies.
func (c *checker) compiles(m mutant) bool {
	const name = "mutant"
	file, err := parser.ParseFile(c.fset, name, group{m}.text(), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	good := true
	config := types.Config{Importer: c.imports, Error: func(err error) {
		if e, ok := err.(types.Error); ok && c.fset.Position(e.Pos).Filename == name { //nolint:errorlint // the package hands over the error itself
			good = false
		}
	}}
	config.Check(c.src.file.Name.Name, c.fset, append([]*ast.File{file}, c.others...), nil) //nolint:errcheck // Error has had them all
	return good
}
