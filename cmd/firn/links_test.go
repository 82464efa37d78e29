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
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linkInText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInID    = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// headingIDs returns the fragments that GitHub generates for the headings of a document.
func headingIDs(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	code := false
	for line := range strings.Lines(string(text)) {
		code = code != strings.HasPrefix(line, "```")
		heading := strings.TrimLeft(line, "#")
		if code || heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		heading = linkInText.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "$1")
		ids[strings.ReplaceAll(notInID.ReplaceAllString(heading, ""), " ", "-")] = true
	}
	return ids
}

// TestTheLinksInDocumentsAreValid checks links to files of this repository and to their headings.
func TestTheLinksInDocumentsAreValid(t *testing.T) {
	root := filepath.Join("..", "..")
	links := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "\n<<<<<<< ") || strings.Contains(string(text), "\n>>>>>>> ") {
			t.Errorf("%s has marks of a merge conflict", path)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // another site
			}
			links++
			target := path
			if to != "" {
				target = filepath.Join(filepath.Dir(path), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: no such file", path, m[1])
			} else if fragment != "" && filepath.Ext(target) == ".md" && !headingIDs(t, target)[fragment] {
				t.Errorf("%s: %s: no such heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links == 0 {
		t.Error("the documents have no links")
	}
}

// TestTheIndexNamesEachPage looks for the pages of docs in docs/README.md.
func TestTheIndexNamesEachPage(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	index, err := os.ReadFile(filepath.Join(docs, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if name != "README.md" && !strings.Contains(string(index), "]("+name+")") && !strings.Contains(string(index), "]("+name+"#") {
			t.Errorf("docs/README.md has no link to %s: add it to the task that it serves", name)
		}
	}
}
