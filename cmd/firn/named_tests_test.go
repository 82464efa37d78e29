package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestTheTestsThatDocumentsNameExist compares the tests that documents name with the code.
func TestTheTestsThatDocumentsNameExist(t *testing.T) {
	root := filepath.Join("..", "..")
	exist, named := map[string]bool{}, map[string]string{} // the latter by test, the document
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		found := func(pattern *regexp.Regexp, note func(name string)) error {
			text, err := os.ReadFile(path)
			for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
				note(m[1])
			}
			return err
		}
		switch {
		case filepath.Ext(path) == ".md":
			return found(namedTest, func(name string) { named[name] = path })
		case strings.HasSuffix(path, "_test.go"):
			return found(testFunc, func(name string) { exist[name] = true })
		}
		return nil
	})
	if err != nil || len(named) < 20 {
		t.Fatal(len(named), err)
	}
	for name, document := range named {
		if !exist[name] {
			t.Errorf("%s names %s, which does not exist", document, name)
		}
	}
}
