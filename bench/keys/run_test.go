package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestEachSchemeIsMeasuredInBothDatabases plays what make bench-keys does, with few rows.
func TestEachSchemeIsMeasuredInBothDatabases(t *testing.T) {
	for _, server := range []string{found("mariadbd", "/usr/sbin/mariadbd"), "/usr/lib/postgresql"} {
		_, err := os.Stat(server)
		if _, lookErr := exec.LookPath(server); err != nil && lookErr != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: run scripts/need-servers", server)
			}
			t.Skipf("%s is missing: run scripts/need-servers, or make test", server)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, settings{rows: 200, batch: 10, writers: 4, rounds: 1}); err != nil {
		t.Fatal(err)
	}
	for _, k := range schemes {
		if n := strings.Count(out.String(), "| "+k.name+" | "); n != 2 {
			t.Errorf("%s is measured %d times, want once in each database:\n%s", k.name, n, &out)
		}
	}
}
