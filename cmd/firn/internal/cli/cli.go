// Package cli is the firn command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit statuses.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// errUsage marks wrong usage, which exits with another status than a failure.
var errUsage = errors.New("wrong usage")

// usage marks err as wrong usage; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

type usageError struct{ error }

func (usageError) Is(target error) bool { return target == errUsage }
func (e usageError) Unwrap() error      { return e.error }

// errSilent ends a command without a message: whoever read its output has gone.
var errSilent = errors.New("output closed")

// Main runs the command line and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// A closed pipe shall be an error of the write, so that leases are released.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSilent), errors.Is(err, syscall.EPIPE):
		return exitError
	case errors.Is(err, errUsage), strings.HasPrefix(err.Error(), "unknown command"):
		fmt.Fprintf(stderr, "firn: %v\nTry: %s --help\n", err, cmd.CommandPath())
		return exitUsage
	default:
		fmt.Fprintf(stderr, "firn: %v\n", err)
		return exitError
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "firn",
		Short: "Unique ids for distributed systems",
		Long: `firn makes unique, time-ordered 64-bit ids, safely beside any number of other
processes, takes them apart, and serves them over HTTP.

  firn next -n 5          five ids, made here
  firn decode ID          what is in an id
  firn layout             the layouts it knows
  firn serve              an issuing service on http://127.0.0.1:7070
  firn workers            who holds which worker
  firn doctor             what is wrong with the clock or the store

Every flag can come from the environment: --store as FIRN_STORE, and so on.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return usage(fromEnvironment(cmd.Flags()))
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.AddCommand(newNext(), newDecode(), newLayout(), newServe(), newWorkers(), newDoctor(), newBench(), newEmit(), newVersion())
	root.InitDefaultCompletionCmd()
	return root
}

// fromEnvironment sets the flags not given on the command line from FIRN_….
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		name := "FIRN_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// noArgs refuses arguments as wrong usage.
func noArgs(cmd *cobra.Command, args []string) error {
	return usage(cobra.NoArgs(cmd, args))
}
