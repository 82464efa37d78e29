package applications_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePageShowsTestedCode compares the code on the page with that in this folder.
func TestThePageShowsTestedCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/applications.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "testdata/ent_test.go")
	var code strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 10 {
		t.Errorf("the page has %d blocks of code", len(blocks))
	}
	for _, b := range blocks {
		if b[1] != "go" || !strings.Contains(code.String(), b[2]) {
			t.Errorf("this block in %q is not code of this folder:\n%s", b[1], b[2])
		}
	}
}
