// Command zipdir packs a folder into a zip file, names relative to the folder:
// what scripts/offwork makes a module proxy of.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
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
	return errors.Join(w.AddFS(os.DirFS(args[0])), w.Close())
}
