package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the store is a SQLite file
)

// TestARestoredStoreRepeatsNoID restores an older copy of a store and does what docs/backup.md says, with its names.
func TestARestoredStoreRepeatsNoID(t *testing.T) {
	raise := snippets(t, "docs/backup.md", "## Raise a counter")
	if len(raise) != 2 || raise[0].language != "sh" || raise[1].language != "sql" {
		t.Fatalf("the page has other code: %+v", raise)
	}
	run, store := session(t), sqliteStore(t)
	path := strings.TrimPrefix(store, "sqlite:")
	had := map[string]bool{}
	issue := func(count string) {
		t.Helper()
		for _, kind := range [][]string{
			{"--layout", "firn"},
			{"--kind", "segment", "--name", "items"},
			{"--kind", "sequence", "--name", "txn"},
			{"--kind", "number", "--name", "bills", "--template", "INV{yyyy}-{n:5}"},
		} {
			status, out := run(nil, append([]string{"next", "--store", store, "-n", count}, kind...)...)
			if status != 0 {
				t.Fatalf("%v: %s", kind, out)
			}
			for id := range strings.Lines(out) {
				if id = strings.Join(kind, " ") + " " + id; had[id] {
					t.Errorf("twice: %s", id)
				}
				had[id] = true
			}
		}
	}
	issue("3")
	copied, err := os.ReadFile(path) // no process has the file open
	if err != nil {
		t.Fatal(err)
	}
	issue("5")

	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, copied, 0o600); err != nil {
		t.Fatal(err)
	}
	for command := range strings.Lines(strings.ReplaceAll(raise[0].text, "redis://10.0.0.5:6379/0", store)) {
		if status, out := run(nil, strings.Fields(command)[1:]...); status != 0 || out != "70001\n" {
			t.Errorf("%s: %s", command, out)
		}
	}
	db, err := sql.Open("sqlite", filepath.ToSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	thisYear := strings.ReplaceAll(raise[1].text, `"2026`, time.Now().UTC().Format(`"2006`))
	for statement := range strings.Lines(thisYear) {
		result, err := db.ExecContext(t.Context(), statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if n, err := result.RowsAffected(); n != 1 || err != nil {
			t.Errorf("%s: %d rows, %v", statement, n, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	issue("5")
	if len(had) != 4*(3+5+5) {
		t.Errorf("%d ids", len(had))
	}
}
