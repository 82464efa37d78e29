package applications_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/entc/gen"
	"entgo.io/ent/entc/load"
	"entgo.io/ent/schema/field"
)

// Invoice is a schema of ent.
type Invoice struct{ ent.Schema }

// Fields of the Invoice.
func (Invoice) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").StructTag(`json:"id,string"`).
			Annotations(entsql.Annotation{Incremental: new(false)}),
		field.String("what"),
	}
}

// generate generates the client of an Invoice in a folder, as go generate does.
func generate(t *testing.T, folder string) {
	t.Helper()
	text, err := load.MarshalSchema(Invoice{})
	if err != nil {
		t.Fatal(err)
	}
	invoice, err := load.UnmarshalSchema(text)
	if err != nil {
		t.Fatal(err)
	}
	storage, err := gen.NewStorage("sql")
	if err != nil {
		t.Fatal(err)
	}
	config := gen.Config{Package: "github.com/firn-id/firn/bench/applications/ent", Target: folder, Storage: storage}
	graph, err := gen.NewGraph(&config, invoice)
	if err != nil {
		t.Fatal(err)
	}
	if err := graph.Gen(); err != nil {
		t.Fatal(err)
	}
}

// TestTheRecipeOfEntRuns runs the tests in testdata/ent_test.go with a client that it generates. The
// client has thousands of lines and is in no commit. An overlay shows both to the compiler in this folder.
func TestTheRecipeOfEntRuns(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	recipe := filepath.Join(here, "testdata/ent_test.go")
	if _, err := os.Stat(recipe); err != nil { // go test looks here for changes before it reuses a result
		t.Fatal(err)
	}
	replace := map[string]string{filepath.Join(here, "ent_test.go"): recipe}
	client := t.TempDir()
	generate(t, client)
	err = fs.WalkDir(os.DirFS(client), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			replace[filepath.Join(here, "ent", path)] = filepath.Join(client, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// Vet would enter the folder of the client, which is in the overlay only.
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-run", "^TestEnt", ".").CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v\n%s", err, out)
	}
}
