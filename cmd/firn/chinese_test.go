package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// follows matches the line of a Chinese page that names an English page and the start of its SHA-256. "in part"
	// means that the Chinese page leaves things out.
	follows  = regexp.MustCompile(`(?m)^<!-- follows (\S+) ([0-9a-f]{12})( in part)? -->$`)
	fenced   = regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?)^ *```$")
	remark   = regexp.MustCompile(`(?m)(^|[ \t]+)(#|//) .*$`)
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	figure   = regexp.MustCompile(`\d[\d,.]*\d`)
)

// A chinesePage is a page in Chinese, with the text of the English pages that it follows.
type chinesePage struct {
	path, text, english string
	whole               bool // it has all code of the English pages
}

// chinesePages returns README.zh-CN.md and the pages in docs/zh.
func chinesePages(t *testing.T) []chinesePage {
	t.Helper()
	root := filepath.Join("..", "..")
	paths, err := filepath.Glob(filepath.Join(root, "docs", "zh", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []chinesePage
	for _, path := range append(paths, filepath.Join(root, "README.zh-CN.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := chinesePage{path: filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))), text: string(text), whole: true}
		for _, m := range follows.FindAllStringSubmatch(page.text, -1) {
			english, err := os.ReadFile(filepath.Join(root, m[1]))
			if err != nil {
				t.Fatalf("%s: %v", page.path, err)
			}
			page.english += string(english) + "\n"
			page.whole = page.whole && m[3] == ""
		}
		if page.english == "" {
			t.Fatalf(`%s has no line such as "<!-- follows docs/server.md 0123456789ab -->". The number is what this prints: sha256sum docs/server.md | cut -c1-12`, page.path)
		}
		pages = append(pages, page)
	}
	return pages
}

// codeOf returns the code blocks of a page without comments. Lines that say how a program is run stay.
func codeOf(page string) []string {
	var blocks []string
	for _, m := range fenced.FindAllStringSubmatch(page, -1) {
		block := m[2] + "\n"
		for line := range strings.Lines(m[3]) {
			line = strings.TrimRight(strings.TrimPrefix(line, m[1]), "\n")
			if run := howToRun.FindString(line); run != "" {
				line = run
			} else {
				line = strings.TrimRight(remark.ReplaceAllString(line, ""), " \t")
			}
			block += line + "\n"
		}
		blocks = append(blocks, block)
	}
	return blocks
}

func TestTheChinesePagesAreAsNewAsTheEnglishOnes(t *testing.T) {
	pages := chinesePages(t)
	if len(pages) < 9 {
		t.Errorf("%d pages", len(pages))
	}
	for _, page := range pages {
		for _, m := range follows.FindAllStringSubmatch(page.text, -1) {
			english, err := os.ReadFile(filepath.Join("..", "..", m[1]))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(english)
			if now := hex.EncodeToString(sum[:6]); now != m[2] {
				t.Errorf("%[1]s changed after %[2]s was written. See what changed:\n"+
					"\tgit diff $(git log -1 --format=%%h -- %[2]s) -- %[1]s\n"+
					"Say the same in %[2]s, then write there: <!-- follows %[1]s %[3]s%[4]s -->", m[1], page.path, now, m[3])
			}
		}
	}
}

// TestTheChinesePagesHaveTheCodeOfTheEnglishOnes compares the blocks apart from their comments. So the tests of the
// English pages hold for the Chinese ones too.
func TestTheChinesePagesHaveTheCodeOfTheEnglishOnes(t *testing.T) {
	compared := 0
	for _, page := range chinesePages(t) {
		english, chinese := codeOf(page.english), codeOf(page.text)
		for i, block := range chinese {
			at := slices.Index(english, block)
			if at < 0 {
				t.Errorf("%s: the English page does not have this code, or has it earlier:\n%s", page.path, block)
				break
			}
			if page.whole && at > 0 {
				t.Errorf("%s leaves out this code before its block %d:\n%s", page.path, i+1, english[0])
				break
			}
			english = english[at+1:]
			compared++
			if page.whole && i == len(chinese)-1 && len(english) > 0 {
				t.Errorf("%s leaves out this code at its end:\n%s", page.path, english[0])
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d blocks were compared", compared)
	}
}

// TestTheChinesePagesHaveTheFiguresOfTheEnglishOnes looks for names in code and for numbers of two or more digits.
func TestTheChinesePagesHaveTheFiguresOfTheEnglishOnes(t *testing.T) {
	compared := 0
	for _, page := range chinesePages(t) {
		code := strings.Join(fenced.FindAllString(page.english, -1), "\n") + "\n" +
			strings.Join(codeSpan.FindAllString(fenced.ReplaceAllString(page.english, ""), -1), "\n")
		prose := follows.ReplaceAllString(fenced.ReplaceAllString(page.text, ""), "")
		for _, m := range codeSpan.FindAllStringSubmatch(prose, -1) {
			compared++
			if !regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(m[1]) + `(\W|$)`).MatchString(code) {
				t.Errorf("%s: the English page does not have `%s`", page.path, m[1])
			}
		}
		figures := figure.FindAllString(page.english, -1)
		prose = codeSpan.ReplaceAllString(linkInText.ReplaceAllString(prose, "$1"), "")
		for _, number := range figure.FindAllString(prose, -1) {
			if compared++; !slices.Contains(figures, number) {
				t.Errorf("%s: the English page does not have the number %s", page.path, number)
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d names and numbers were compared", compared)
	}
}
