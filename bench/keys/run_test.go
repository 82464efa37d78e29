package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestEachSchemeIsMeasuredInBothDatabases plays what make bench-keys does, with few rows.
func TestEachSchemeIsMeasuredInBothDatabases(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), t, &out, settings{rows: 200, batch: 10, writers: 4, rounds: 1}); err != nil {
		t.Fatal(err)
	}
	for _, k := range schemes {
		if n := strings.Count(out.String(), "| "+k.name+" | "); n != 2 {
			t.Errorf("%s is measured %d times, want once in each database:\n%s", k.name, n, &out)
		}
	}
}
