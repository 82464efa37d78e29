package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzConfig reads configurations: an error names the file, and what is accepted
// makes a configuration of every namespace.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"namespaces:\n  orders: {kind: snowflake, layout: firn, clock: steady, ahead: 1s}\n",
		"namespaces:\n  a: {layout: twitter, clock: wall, rollback: [wait 500ms, history 2000, switch, refuse]}\nlimits: {batch: 10}\n",
		"namespaces: {x: {worker: -1}}", "namespaces: [1]", "listen: {http: 1}", "a: &a [*a]", "\t", "\xff", "namespaces:\n  ? {a: b}\n  : c", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "firn.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := Read(path)
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Fatalf("%q: %v does not name the file", text, err)
			}
			return
		}
		for name, ns := range cfg.Namespaces {
			if errs := ns.Mistakes(); len(errs) > 0 {
				t.Fatalf("%q was accepted with namespace %q: %v", text, name, errs)
			}
		}
	})
}
