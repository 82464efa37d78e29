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

// TestOnlyRegistersWriteToAStore: code that writes by itself has to handle unknown
// outcomes again, and sooner or later one place forgets to.
func TestOnlyRegistersWriteToAStore(t *testing.T) {
	allowed := []string{ // beside tests: the one home, what wraps a store, and what tests stores
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
				t.Errorf("%v: a store is written to beside package register", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Error("no call was found: this test sees nothing")
	}
}
