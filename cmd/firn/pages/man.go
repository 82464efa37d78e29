package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
	"github.com/firn-id/firn/store/filestore"
)

// writeManual writes a manual page for each command into a folder, which it makes. It is not a command of firn, since the
// library for it would make the binary larger. The date of the pages is SOURCE_DATE_EPOCH, if that is set.
func writeManual(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everyone may read manuals
		return err
	}
	root := cli.Command()
	prepare(root)
	header := &doc.GenManHeader{Section: "1", Source: "Firn", Manual: "Firn"}
	return doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Header: header, Path: folder, CommandSeparator: "-"})
}

// prepare makes the texts of a command and those below it ready for the library, which takes them for Markdown.
func prepare(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true // a line of advertising, with the date
	cmd.Long = markdown(cmd.Long)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		f.Usage = escape(f.Usage)
		if home, err := filestore.Home(); err == nil { // of who makes the pages
			f.DefValue = strings.Replace(f.DefValue, home, "~/.local/state/firn", 1)
		}
	})
	for _, sub := range cmd.Commands() {
		prepare(sub)
	}
}

// markdown returns a plain text as Markdown: lines that are indented are shown as they are.
func markdown(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
			b.WriteString("    " + strings.TrimPrefix(line, "\t"))
		} else {
			b.WriteString(escape(line))
		}
	}
	return b.String()
}

// escape returns a line as Markdown that means it literally.
func escape(line string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `<`, `\<`, "`", "\\`").Replace(line)
}
