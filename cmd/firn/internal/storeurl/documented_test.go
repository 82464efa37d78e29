package storeurl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const checkout = "../../../.."

func TestEachSchemeIsInTheDocuments(t *testing.T) {
	stores, err := os.ReadFile(checkout + "/docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	overview, err := os.ReadFile(checkout + "/docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		begins := "`" + k.scheme + ":"
		if !strings.Contains(string(stores), begins) {
			t.Errorf("docs/stores.md has no %s", begins)
		}
		// The others are for tests, or another way to write one of these.
		if usual := k.port != "" || k.file != nil; usual && !strings.Contains(string(overview), begins) {
			t.Errorf("docs/cli.md has no %s", begins)
		}
	}
}

func TestEachStoreOfTheProjectHasAScheme(t *testing.T) {
	var imported strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		imported.Write(text)
	}
	found := 0
	for _, pattern := range []string{"*store", "store/*store"} {
		folders, err := filepath.Glob(filepath.Join(checkout, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			name, err := filepath.Rel(checkout, folder)
			if err != nil {
				t.Fatal(err)
			}
			if name == "store" { // the interface
				continue
			}
			found++
			if !strings.Contains(imported.String(), `"github.com/firn-id/firn/`+filepath.ToSlash(name)+`"`) {
				t.Errorf("no file here imports %s", name)
			}
		}
	}
	if found < 6 {
		t.Errorf("found only %d stores", found)
	}
}
