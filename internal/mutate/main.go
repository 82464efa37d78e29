// Command mutate makes small wrong changes (mutants) to files and reports those that no test
// notices. It does not write to the sources: changed files are in an overlay of the build.
//
//	go run ./internal/mutate -files 'core.go,history.go'
//	go run ./internal/mutate -files 'lease/*.go' -for 30m
//	go run ./internal/mutate -files core.go -only core.go:123:7 -diff
//
// A survivor means that a test is missing, unless the change has no visible effect: such survivors
// are listed with the reason in survivors.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	files, only, results string
	commands, survivors  string
	parallel             int
	lasts, slack         time.Duration
	listed, show, diff   bool
}

func main() {
	var o options
	flag.StringVar(&o.files, "files", "", "the files to change, relative to this folder, such as core.go,lease/*.go")
	flag.StringVar(&o.only, "only", "", "try only the mutants at this position, such as core.go:123:7, or one of them, such as core.go:123:7/2")
	flag.StringVar(&o.results, "results", "", "keep results in this file, and skip mutants that it already has, except survivors")
	flag.StringVar(&o.commands, "plan", "internal/mutate/plan.txt", "the commands that must fail, by file")
	flag.StringVar(&o.survivors, "survivors", "internal/mutate/survivors.txt", "the known survivors, with reasons")
	flag.IntVar(&o.parallel, "p", 2, "how many to try at a time")
	flag.DurationVar(&o.lasts, "for", 0, "stop after this time (0: no limit)")
	flag.DurationVar(&o.slack, "slack", 5*time.Second, "how much longer than four times its usual time a command may take")
	flag.BoolVar(&o.listed, "listed", false, "try the listed survivors too")
	flag.BoolVar(&o.show, "list", false, "only list the mutants")
	flag.BoolVar(&o.diff, "diff", false, "show what each changes, with -list or -only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "mutate: %v\n", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, out io.Writer) (err error) {
	if flag.NArg() > 0 || o.files == "" || o.parallel < 1 {
		return errors.New("name the files with -files, in quotes; -p must be at least 1: see -help")
	}
	files, err := load(o.files)
	if err != nil {
		return err
	}
	known, err := readSurvivors(o.survivors)
	if err != nil {
		return err
	}
	r := run{options: o, known: known}
	r.choose(files)
	if len(r.chosen) == 0 {
		return errors.New("there is no such mutant")
	}
	if o.show {
		for _, m := range r.chosen {
			o.tell(out, m)
		}
		return nil
	}
	if r.ledger, err = openLedger(o.results); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.ledger.close()) }()
	commands, err := readPlan(o.commands)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "firn-mutate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	module, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	r.bench = bench{dir: dir, module: module, plan: commands, slack: o.slack, files: map[string]string{}, covered: map[string]coverage{}, tests: map[string][]string{}, limits: map[string]limit{}}
	return r.all(ctx, out)
}

// tell shows a mutant.
func (o options) tell(out io.Writer, m mutant) {
	fmt.Fprintf(out, "%s  %s: %s\n", m.id(), m.fn, m.what)
	if !o.diff {
		return
	}
	for _, e := range m.edits {
		fmt.Fprintf(out, "\t- %s\n\t+ %s\n", m.src.text[e.from:e.to], e.text)
	}
}
