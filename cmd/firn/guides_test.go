package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// TestTheMigrationGuidesWork checks the configurations and layouts of the guides, and runs their
// commands.
func TestTheMigrationGuidesWork(t *testing.T) {
	run := session(t)
	block := regexp.MustCompile("(?ms)^ *```(yaml|sh|go)\n(.*?)^ *```$")
	quotedLayout := regexp.MustCompile(`(?:ParseLayout\(|--layout )"?([^" )]+)`)
	for _, from := range []string{"leaf", "tinyid", "bwmarrin", "sonyflake", "uid-generator", "ich"} {
		name := filepath.Join("..", "..", "docs", "migrate-"+from+".md")
		guide, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		commands, environment := 0, []string{"FIRN_STORE=" + sqliteStore(t)}
		for _, match := range block.FindAllStringSubmatch(string(guide), -1) {
			language, text := match[1], match[2]
			for _, l := range quotedLayout.FindAllStringSubmatch(text, -1) {
				if _, err := firn.ParseLayout(l[1]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			switch language {
			case "yaml":
				path := filepath.Join(t.TempDir(), "firn.yaml")
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := settings.Read(path); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case "sh":
				for line := range strings.Lines(text) {
					words := strings.Fields(line)
					// Run only commands that need no server and no other command's output.
					if len(words) < 2 || words[0] != "firn" || words[1] != "decode" && words[1] != "layout" && words[1] != "next" || strings.Contains(line, "$(") {
						continue
					}
					commands++
					if status, out := run(environment, words[1:]...); status != 0 {
						t.Errorf("%s: %s exits with %d: %s", name, line, status, out)
					}
				}
			}
		}
		if commands == 0 && from != "tinyid" {
			t.Errorf("%s has no command that was run", name)
		}
	}
}
