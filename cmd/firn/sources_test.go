package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// declarations returns what Go packages of this repository export, as package.Name and
// package.Type.Member, and the names of its tests.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "internal" || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			declared(strings.TrimSuffix(file.Name.Name, "_test"), d, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// declared adds what a declaration exports.
func declared(pkg string, d ast.Decl, found map[string]bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := pkg + "."
		if d.Recv != nil {
			name += receiver(d.Recv.List[0].Type) + "."
		} else if strings.HasPrefix(d.Name.Name, "Test") {
			found[d.Name.Name] = true
		}
		found[name+d.Name.Name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					found[pkg+"."+n.Name] = true
				}
			case *ast.TypeSpec:
				name := pkg + "." + s.Name.Name
				found[name] = true
				var members *ast.FieldList
				switch of := s.Type.(type) {
				case *ast.StructType:
					members = of.Fields
				case *ast.InterfaceType:
					members = of.Methods
				default:
					continue
				}
				for _, m := range members.List {
					for _, n := range m.Names {
						found[name+"."+n.Name] = true
					}
				}
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // a generic type
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

var (
	quoted    = regexp.MustCompile("`([^`]+)`")
	symbol    = regexp.MustCompile(`^[a-z]+\.[A-Z]\w*(\.\w+)?$`)
	testName  = regexp.MustCompile(`^Test[A-Z]\w*$`)
	flagName  = regexp.MustCompile(`^--[a-z-]+$`)
	setting   = regexp.MustCompile(`^[a-z_]+:$`) // of a configuration
	command   = regexp.MustCompile(`^firn [a-z]+$`)
	monitored = regexp.MustCompile(`^(Firn[A-Za-z]+|firn_[a-z_]+)$`)
)

// watched returns the alerts, and the queries of the dashboard.
func watched(t *testing.T) string {
	t.Helper()
	alerts, err := os.ReadFile(filepath.Join(deploy, "prometheus-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(alerts) + strings.Join(dashboardQueries(t), "\n")
}

// isWatched reports whether text from watched has an alert or a metric.
func isWatched(watched, name string) bool {
	if strings.HasPrefix(name, "Firn") {
		return strings.Contains(watched, "alert: "+name+"\n")
	}
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(watched)
}

// TestTheTableOfSourcesNamesWhatExists checks the symbols, flags, commands, presets, tests, metrics and
// alerts in the third column of docs/sources.md. TestTheLinksInDocumentsAreValid checks its links.
func TestTheTableOfSourcesNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../../docs/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	run, symbols, metrics := session(t), declarations(t), watched(t)
	var help strings.Builder
	for _, command := range []string{"next", "decode", "layout", "serve", "workers", "bench", "rehearse", "import", "doctor", "veil", "token"} {
		status, out := run(nil, command, "--help")
		if status != 0 {
			t.Fatalf("firn %s --help: %s", command, out)
		}
		help.WriteString(out)
	}
	exists := func(name string) (known, there bool) {
		switch {
		case symbol.MatchString(name):
			return true, symbols[name]
		case testName.MatchString(name):
			return true, symbols[name]
		case flagName.MatchString(name):
			return true, regexp.MustCompile(`(?m)^ .*` + name + `\b`).MatchString(help.String())
		case monitored.MatchString(name):
			return true, isWatched(metrics, name)
		case setting.MatchString(name):
			return true, strings.Contains(string(reference), "\n| `"+strings.TrimSuffix(name, ":")+"` |")
		case command.MatchString(name):
			status, _ := run(nil, strings.Fields(name)[1], "--help")
			return true, status == 0
		default:
			_, err := firn.ParseLayout(name)
			return err == nil, true
		}
	}
	rows, names := 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) != 4 || strings.HasPrefix(line, "| from") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		left := strings.HasPrefix(cells[2], "not offered, on purpose")
		found := quoted.FindAllStringSubmatch(cells[2], -1)
		if !left && len(found) == 0 && !link.MatchString(cells[2]) {
			t.Errorf("this row names nothing: %s", line)
		}
		for _, m := range found {
			names++
			known, there := exists(m[1])
			if !known && !left || known && !there {
				t.Errorf("%s does not exist: %s", m[1], line)
			}
		}
	}
	if rows < 150 || names < 150 {
		t.Errorf("the table has %d rows with %d names", rows, names)
	}
}
