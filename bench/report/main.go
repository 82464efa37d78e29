// Command report measures and prints Markdown tables: single calls of generators, Firn's and others', or what its
// argument names. Run it in the root of the repository.
//
//	go run ./bench/report [-chart FILE]  # single calls in short slices, also on a busy machine; FILE gets an SVG picture
//	go run ./bench/report lag            # how late the times in ids are, with and without a lag
//	go run ./bench/report segments       # segments under full demand, on real stores
//	go run ./bench/report start          # the command as a whole process, and the memory of an idle server
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
)

func main() {
	picture := flag.String("chart", "", "write a picture of the single calls into this SVG file")
	flag.Parse()
	if err := run(*picture, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(picture string, args []string) error {
	switch {
	case len(args) == 0:
		return calls(picture)
	case picture != "":
		return fmt.Errorf("-chart draws the single calls: leave out %q", args)
	case len(args) == 1 && args[0] == "lag":
		return lags()
	case len(args) == 1 && args[0] == "segments":
		return segments()
	case len(args) == 1 && args[0] == "start":
		return host.Run(func(h *host.Host) error { return starts(h) })
	default:
		return fmt.Errorf("%q: write no argument, for single calls, or lag, segments or start", args)
	}
}

// calls measures single calls, and generators at their limits.
func calls(picture string) error {
	all, err := subjects()
	if err != nil {
		return err
	}
	table, err := measure(all, 2, 200, 5*time.Minute)
	if err != nil {
		return err
	}
	if err := show(table); err != nil {
		return err
	}
	if picture != "" {
		if err := chart(picture, table); err != nil {
			return err
		}
	}
	fmt.Println()
	return limits()
}
