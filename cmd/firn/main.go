// Command firn makes and explains unique ids: server, client and toolbox in
// one binary. Try firn help, or firn next -n 5.
package main

import (
	"os"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
