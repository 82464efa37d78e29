package main

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A text that is not there any more is no mutant, nor is what does not compile.
func TestEachMutantChangesTheCodeAsItIsAndCompiles(t *testing.T) {
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "source", nil)
	for i, m := range mutants {
		changed := map[string]string{} // by path
		for _, e := range m.edits {
			path := filepath.Join("../../..", e.file)
			text, ok := changed[path]
			if !ok {
				read, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				text = string(read)
			}
			if n := strings.Count(text, e.old); n != 1 {
				t.Errorf("mutant %d, %s: %d places in %s are %q", i+1, m.name, n, e.file, e.old)
			}
			changed[path] = strings.Replace(text, e.old, e.new, 1)
		}
		for path := range changed {
			if err := compile(files, imports, filepath.Dir(path), changed); err != nil {
				t.Errorf("mutant %d, %s: %v", i+1, m.name, err)
			}
		}
	}
}

// compile checks the package of a folder, with these texts instead of those of its files.
func compile(files *token.FileSet, imports types.Importer, dir string, changed map[string]string) error {
	of, err := build.ImportDir(dir, 0)
	if err != nil {
		return err
	}
	var parsed []*ast.File
	for _, name := range of.GoFiles {
		path := filepath.Join(dir, name)
		var text any // nil: that of the file
		if other, ok := changed[path]; ok {
			text = other
		}
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	_, err = (&types.Config{Importer: imports}).Check(dir, files, parsed, nil)
	return err
}
