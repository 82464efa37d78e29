// Command zipdir packs a folder into a zip file, names relative to the folder:
// what scripts/offwork makes a module proxy of.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "zipdir:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	if len(args) != 2 {
		return errors.New("usage: zipdir FOLDER FILE.zip")
	}
	out, err := os.Create(args[1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := zip.NewWriter(out)
	return errors.Join(addFiles(w, os.DirFS(args[0])), w.Close())
}

// addFiles adds the files and, unlike zip.Writer.AddFS, no entries for folders,
// which a module's zip must not have.
func addFiles(w *zip.Writer, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		entry, err := w.Create(name)
		if err != nil {
			return err
		}
		_, err = entry.Write(content)
		return err
	})
}
