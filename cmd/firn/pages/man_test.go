package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
)

func TestEachCommandHasAPage(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	folder := filepath.Join(t.TempDir(), "man")
	if err := writeManual(folder); err != nil {
		t.Fatal(err)
	}
	pages := 0
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		pages++
		text, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Fatal(err)
		}
		page := strings.NewReplacer(`\`, "", "\n", " ").Replace(string(text)) // without what roff escapes
		wants := []string{cmd.Short}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				wants = append(wants, "--"+f.Name, f.Usage)
			}
		})
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if strings.HasPrefix(line, "  ") {
				wants = append(wants, strings.TrimSpace(line))
			}
		}
		for _, want := range wants {
			if !strings.Contains(page, strings.ReplaceAll(want, `\`, "")) {
				t.Errorf("%s has no %q:\n%s", cmd.CommandPath(), want, text)
			}
		}
		if strings.Contains(page, home) || strings.Contains(page, "cobra") {
			t.Errorf("%s names who made the page:\n%s", cmd.CommandPath(), text)
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	root := cli.Command()
	check(root)
	if pages < 20 {
		t.Errorf("only %d commands were checked", pages)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "firn.1")); err != nil || !strings.Contains(string(text), "\n  firn layout             list the layouts\n") {
		t.Errorf("the list of commands is not shown as it is: %v\n%s", err, text)
	}
}
