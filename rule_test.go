package firn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Code that writes to a store directly must handle unknown outcomes itself, which is easily
// forgotten. Package register handles them in one place.
func TestOnlyRegistersWriteToAStore(t *testing.T) {
	allowed := []string{ // package register, wrappers of stores, and tests of stores
		"store/register", "store/storetest", "internal/sim", "cmd/firn/internal/telemetry", "cmd/firn/internal/storeurl",
	}
	calls := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 4 { // those of sync/atomic have two
				return true
			}
			if to, ok := call.Fun.(*ast.SelectorExpr); !ok || to.Sel.Name != "CompareAndSwap" {
				return true
			}
			calls++
			if !slices.Contains(allowed, filepath.ToSlash(filepath.Dir(path))) {
				t.Errorf("%v: write to a store through package register", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Error("this test found no calls at all")
	}
}
