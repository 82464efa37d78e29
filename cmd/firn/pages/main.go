// Command pages writes the documents that are made from the code.
//
//	go run ./cmd/firn/pages reference FOLDER  # configuration.md and firn.schema.json
//	go run ./cmd/firn/pages manual FOLDER     # a manual page for each command
package main

import (
	"fmt"
	"os"
)

func main() {
	write := map[string]func(folder string) error{"reference": writeReference, "manual": writeManual}
	if len(os.Args) != 3 || write[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: pages reference|manual FOLDER")
		os.Exit(2)
	}
	if err := write[os.Args[1]](os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
