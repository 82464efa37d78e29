package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestARestoredStoreRepeatsNoID restores an older copy of a store and does what docs/backup.md says, with its names.
func TestARestoredStoreRepeatsNoID(t *testing.T) {
	raise := snippets(t, "docs/backup.md", "## Raise a counter")
	if len(raise) != 2 || raise[0].language != "sh" || raise[1].language != "sh" {
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
			{"--kind", "number", "--name", "bills", "--template", "INV{yyyy}-{n:5}", "--zone", "+08:00"},
		} {
			status, out := run(nil, append([]string{"next", "--store", store, "-n", count}, kind...)...)
			if status != 0 {
				t.Fatalf("%v: %s", kind, out)
			}
			for id := range strings.Lines(out) {
				if strings.HasPrefix(id, "firn: ") { // that the counter is new
					continue
				}
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
	config := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(config, []byte(`store: "`+store+`"
namespaces:
  items: {kind: segment, must_exist: true}
  txn: {kind: sequence}
  bills: {kind: number, template: "INV{yyyy}-{n:5}", zone: "+08:00"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	said, year := "", time.Now().In(time.FixedZone("", 8*60*60)).Format("2006")
	for command := range strings.Lines(strings.NewReplacer("redis://10.0.0.5:6379/0", store, "firn.yaml", config, "INV2026", "INV"+year).Replace(raise[0].text + raise[1].text)) {
		status, out := run(nil, strings.Fields(command)[1:]...)
		if status != 0 {
			t.Errorf("%s: %s", command, out)
		}
		said += out
	}
	if want := "items goes on above 70000\ntxn goes on above 70000\nbills goes on above INV" + year + "-00041\n70001\n"; said != want {
		t.Errorf("the commands print %s, want %s", said, want)
	}
	issue("5")
	if len(had) != 4*(3+5+5) {
		t.Errorf("%d ids", len(had))
	}
}
