package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
)

// makePool creates a store with a record of its default pool.
func makePool(t *testing.T, url, record string) {
	t.Helper()
	s, err := storeurl.Create(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "firn/default/pool", 0, []byte(record)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAStrictPoolIsShownAndCanBeRelaxed(t *testing.T) {
	run := session(t)
	url := "sqlite:" + t.TempDir() + "/firn.db"
	makePool(t, url, `{"layout":"41/0/10/12","made":"2026-11-20T12:00:00Z","open":true,"strict":"1m20s","grace":"12s"}`)
	for _, step := range []struct {
		args   string
		status int
		want   string
	}{
		{"workers", 0, "\npool default, layout firn, strict (a claim waits 1m20s): 0 held"},
		{"workers --json", 0, `"strict":"1m20s"`},
		{"doctor", 0, "default: 0 of 1,024 workers are held; it is strict: a claim waits 1m20s\n"},
		{"next", 1, `pool "default" has the strict wait 1m20s, not 0s: use that of the pool, or another pool (flags --strict and --pool; firn workers relax ends`},
		{"workers relax --pool other", 1, `pool "other" does not exist in store sqlite:`},
		{"workers relax --pool=", 2, `"" is not a valid pool name`},
		{"workers relax now", 2, "Try: firn workers relax --help"},
		{"workers relax", 0, "pool default is no longer strict; a claim waited 1m20s\n"},
		{"workers relax", 0, "pool default is not strict\n"},
		{"workers", 0, "\npool default, layout firn: 0 held"},
		{"next", 0, "\n"},
	} {
		status, out := run(nil, append(strings.Fields(step.args), "--store", url)...)
		if status != step.status || !strings.Contains(out, step.want) {
			t.Errorf("firn %s exits with %d:\n%s", step.args, status, out)
		}
	}
	if _, out := run(nil, "workers", "--json", "--store", url); strings.Contains(out, "strict") {
		t.Errorf("the pool is still shown as strict: %s", out)
	}
}
