package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachMutantChangesTheCodeAsItIs: a text that is not there any more is no mutant.
func TestEachMutantChangesTheCodeAsItIs(t *testing.T) {
	for i, m := range mutants {
		for _, e := range m.edits {
			text, err := os.ReadFile(filepath.Join("../../..", e.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), e.old); n != 1 {
				t.Errorf("mutant %d, %s: %d places in %s are %q", i+1, m.name, n, e.file, e.old)
			}
		}
	}
}
