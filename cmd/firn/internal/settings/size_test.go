package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A server follows its file, so no file may take its memory.
func TestAConfigurationCannotTakeTheMemory(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "x%d: 1, ", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ text, want string }{
		"aliases of aliases":        {bomb.String() + "namespaces: {orders: {}}\n", "more than 200000 values"},
		"aliases of a long list":    {"a: &a [" + strings.Repeat("x, ", 1000) + "x]\nb: [" + strings.Repeat("*a, ", 1000) + "*a]\n", "more than 200000 values"},
		"merged keys":               {"a: &a {" + keys(1000) + "y: 1}\nb: [" + strings.Repeat("{<<: *a}, ", 1000) + "{}]\n", "more than 200000 values"},
		"a large file":              {"namespaces: {orders: {}}\n#" + strings.Repeat("x", 1<<20), "is out of range: 0 to 1048576"},
		"namespaces on one line":    {"namespaces: {" + keys(10_001) + "}\n", "line 1: namespaces: number of entries 10001 is out of range: 0 to 10000"},
		"a list":                    {"anonymous: [" + strings.Repeat("x, ", 10_001) + "]\n", "line 1: anonymous: number of entries 10001 is out of range: 0 to 10000"},
		"brackets":                  {"namespaces: " + strings.Repeat("[", 500_000), "opening brackets"},
		"nested lists":              {"namespaces:\n" + strings.Repeat("- ", 5000) + "x\n", "line 2 has more than 200 of the marks"},
		"lists of lists":            {"namespaces:\n" + strings.Repeat("- ", 150) + "x\n", "nested more than 100 deep"},
		"many lines":                {strings.Repeat("<<:\n- \n", 100_000), "more than 50000 lines"},
		"many documents":            {"a: 1\n" + strings.Repeat("--- 1\n", 5000), "begin with --- or ..."},
		"an anchor that has itself": {"a: &a [*a, *a]\nnamespaces: {orders: {}}\n", "no such setting"},
	} {
		path := filepath.Join(t.TempDir(), "firn.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := settings.Read(path)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "firn.yaml") {
			t.Errorf("%s: %.300v, want %s", name, err, c.want)
		}
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 100 {
			t.Errorf("%s: took %d MB", name, mb)
		}
	}
	for _, mark := range []string{"- ", "? ", "a: ", "&a ", "*a ", "! ", "!t ", "<<: ", "? - ", "&a: ", "-\t", ": ", "\"a\": "} {
		for _, before := range []string{"", "anonymous: ", "anonymous:\n  ", "{", "x: ["} {
			var from, to runtime.MemStats
			runtime.ReadMemStats(&from)
			_, err := settings.Parse("firn.yaml", []byte(before+strings.Repeat(mark, 300_000)+"a\n"))
			runtime.ReadMemStats(&to)
			if mb := (to.TotalAlloc - from.TotalAlloc) >> 20; err == nil || mb > 5 {
				t.Errorf("%q after %q: took %d MB, %.300v", mark, before, mb, err)
			}
		}
	}
	if _, err := settings.Parse("firn.yaml", []byte("namespaces: {orders: &o {layout: firn}, users: *o}\n")); err != nil {
		t.Errorf("an alias: %v", err)
	}
}
