package firn_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Importing the library adds no other module to a build: the root module has no requirement,
// not even for tests. The root package imports only the standard library, and imports between
// the other packages go one way.
func TestTheRootModuleRequiresNothing(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"require", "replace", "exclude", "toolchain"} {
		if strings.Contains(string(mod), word) {
			t.Errorf("go.mod has a line with %q", word)
		}
	}
	if _, err := os.Stat("go.sum"); err == nil {
		t.Error("there is a go.sum")
	}
	const root = "github.com/firn-id/firn"
	allowed := map[string][]string{ // by folder, beside the standard library
		".":                       {root, root + "/firntest"},
		"firntest":                {root, root + "/firntest", root + "/lease", root + "/internal/turns"},
		"store":                   {root, root + "/internal/turns", root + "/store", root + "/store/memstore"},
		"store/filestore":         {root + "/store/backend", root + "/store", root + "/store/filestore", root + "/store/storetest"},
		"store/memstore":          {root, root + "/store", root + "/store/memstore", root + "/store/storetest"},
		"store/sqlstore":          {root, root + "/store/backend", root + "/store", root + "/store/sqlstore"},
		"store/storetest":         {root, root + "/store", root + "/store/memstore", root + "/store/storetest"},
		"lease":                   {root, root + "/internal/config", root + "/internal/outage", root + "/store/register", root + "/firntest", root + "/store", root + "/store/filestore", root + "/store/memstore", root + "/store/storetest", root + "/internal/turns", root + "/lease"},
		"client":                  {root, root + "/internal/config", root + "/internal/turns", root + "/client", root + "/prefetch", root + "/store"},
		"prefetch":                {root, root + "/internal/config", root + "/internal/demand", root + "/internal/turns", root + "/prefetch"},
		"sequence":                {root, root + "/internal/config", root + "/internal/outage", root + "/store/register", root + "/store", root + "/store/memstore", root + "/store/storetest", root + "/internal/turns", root + "/store/storetest/order", root + "/lease", root + "/segment", root + "/sequence"},
		"store/backend":           {root + "/internal/turns", root + "/store/backend", root + "/store"},
		"internal/config":         {root, root + "/internal/config"},
		"internal/demand":         {},
		"internal/outage":         {root + "/internal/outage"},
		"store/register":          {root, root + "/firntest", root + "/store/register", root + "/internal/turns", root + "/store", root + "/store/memstore", root + "/store/storetest"},
		"store/storetest/order":   {root + "/store/storetest/order"},
		"segment":                 {root, root + "/internal/config", root + "/internal/outage", root + "/store/register", root + "/internal/demand", root + "/store", root + "/store/memstore", root + "/store/storetest", root + "/internal/turns", root + "/segment", root + "/prefetch"},
		"segment/leaf":            {root, root + "/internal/foreign", root + "/segment", root + "/segment/leaf"},
		"segment/tinyid":          {root, root + "/store", root + "/internal/foreign", root + "/segment", root + "/segment/tinyid"},
		"internal/foreign":        {root, root + "/segment", root + "/store"},
		"numbering":               {root, root + "/firntest", root + "/internal/config", root + "/numbering", root + "/sequence", root + "/store", root + "/store/memstore", root + "/store/storetest"},
		"objectid":                {root, root + "/firntest", root + "/internal/turns", root + "/objectid"},
		"serial":                  {root, root + "/internal/config", root + "/serial"},
		"prefixed":                {root, root + "/prefixed", root + "/objectid"},
		"internal/sim":            {root, root + "/lease", root + "/prefetch", root + "/segment", root + "/sequence", root + "/store", root + "/internal/turns"},
		"internal/sim/search":     {root + "/internal/sim"},
		"internal/turns":          {root + "/internal/turns"},
		"store/dial":              {root + "/store/dial"},
		"store/hosturl":           {root + "/store/hosturl"},
		"store/storetest/servers": {root + "/store/storetest/servers"},
		"internal/sim/mutants":    {root + "/internal/sim"},
		"internal/mutate":         {},
		"scripts/zipdir":          {},
		"veil":                    {root, root + "/internal/config", root + "/store", root + "/veil"},
	}
	modules := nested(t)
	files := 0
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (slices.Contains(modules, filepath.ToSlash(path)) || path == "testdata" || strings.HasPrefix(path, ".") && path != ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		list, known := allowed[folder]
		if !known {
			t.Errorf("%s: list the allowed imports of this folder in this test", folder)
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			first, _, _ := strings.Cut(name, "/")
			standard := !strings.Contains(first, ".")
			permitted := standard
			for _, p := range list {
				permitted = permitted || p == name
			}
			if !permitted {
				t.Errorf("%s imports %s", path, name)
			}
			if folder == "." && !standard && !strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s: the root package imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 30 {
		t.Errorf("found only %d files", files)
	}
}

// A released module must also build with later versions of the root module, whose internal
// packages may differ.
func TestOtherModulesImportNothingInternal(t *testing.T) {
	files := 0
	for _, module := range nested(t) {
		own := "github.com/firn-id/firn/" + module + "/"
		err := filepath.WalkDir(filepath.FromSlash(module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if strings.HasPrefix(name, "github.com/firn-id/firn/") && strings.Contains(name, "/internal/") && !strings.HasPrefix(name, own) {
					t.Errorf("%s imports %s", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("found only %d files", files)
	}
}

// nested returns the folders of the modules beside the root's, as scripts/modules does.
func nested(t *testing.T) (folders []string) {
	work, err := os.ReadFile("go.work")
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range regexp.MustCompile(`(?m)^\t\./(\S+)$`).FindAllStringSubmatch(string(work), -1) {
		folders = append(folders, use[1])
	}
	return folders
}

// The Makefile, the scripts and the tests above take the modules from go.work.
func TestEachModuleIsInTheWorkspaceAndTheDocument(t *testing.T) {
	document, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	internal, err := filepath.Glob(filepath.FromSlash("cmd/firn/internal/*"))
	if err != nil || len(internal) == 0 {
		t.Fatal(internal, err)
	}
	for _, path := range internal {
		if !strings.Contains(string(document), "`"+filepath.Base(path)+"`") {
			t.Errorf("name the package %s in the table of packages in CONTRIBUTING.md", filepath.Base(path))
		}
	}
	var found []string
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (strings.HasPrefix(path, ".") && path != "." || d.Name() == "testdata") { // as the go command does
			return filepath.SkipDir
		}
		if folder := filepath.ToSlash(filepath.Dir(path)); err == nil && d.Name() == "go.mod" && folder != "." {
			found = append(found, folder)
			if !strings.Contains(string(document), "`"+folder+"`") {
				t.Errorf("name the module %s in the table of modules in CONTRIBUTING.md", folder)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if listed := nested(t); !slices.Equal(slices.Sorted(slices.Values(listed)), found) {
		t.Errorf("go.work uses %q, the modules are %q", listed, found)
	}
}
