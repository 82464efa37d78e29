// Package cli is the firn command line.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
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

// A loggedError ends a command without a further message: the log has it.
type loggedError struct{ error }

func (e loggedError) Unwrap() error { return e.error }

// sameSignal is how long after a signal another is taken for the same.
const sameSignal = time.Second

// Main runs the command line and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// A write to a closed pipe must return an error instead of killing the process, so that leases are released.
	signal.Ignore(syscall.SIGPIPE)
	signals, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer context.AfterFunc(signals, func() { cancel(interruption{context.Cause(signals)}) })()
	// A second signal ends the process at once, unless it was sent together with the first: some programs signal a process
	// group and also each of its processes.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })()

	collectLate()
	if len(args) > 0 && args[0] == "--version" { // with a template, cobra's flag would make the binary a twelfth larger
		args = append([]string{"version"}, args[1:]...)
	}
	root := newRoot(args)
	root.SetArgs(dashedIDs(root, args))
	root.SetIn(stdin)
	out := &output{to: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if lines, ok := root.ErrOrStderr().(*telemetry.Queue); ok { // of a server
		stderr = lines
		defer func() { _ = lines.Close() }() // there is no one left to tell
	}
	failed := err == nil && out.err != nil
	if failed {
		err = out.err
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, syscall.EPIPE): // the reader of the output has gone
		return exitError
	case errors.As(err, new(loggedError)) && errors.Is(err, errUsage):
		return exitUsage
	case errors.As(err, new(loggedError)):
		return exitError
	case errors.Is(err, errUsage), cmd == root && !failed: // the root command only fails if the command is unknown
		meant := ""
		var typed string
		if _, other := fmt.Sscanf(err.Error(), "unknown command %q", &typed); other == nil {
			meant = guess(cmd, typed)
		}
		fmt.Fprintf(stderr, "firn: %s%s\n", plainLines(err.Error()), meant)
		if names := variablesInError(cmd.Flags(), err.Error()); len(names) > 0 {
			fmt.Fprintf(stderr, "Set in the environment: %s\n", strings.Join(names, ", "))
		}
		fmt.Fprintf(stderr, "Try: %s --help\n", cmd.CommandPath())
		return exitUsage
	default:
		fmt.Fprintf(stderr, "firn: %s\n", plainLines(err.Error()))
		return exitError
	}
}

// An interruption is the cause that a signal ended a command. It wraps that of [signal.NotifyContext], whose text reads
// like one about an error.
type interruption struct{ error }

func (i interruption) Error() string {
	if strings.HasPrefix(i.error.Error(), syscall.SIGTERM.String()) {
		return "interrupted by SIGTERM"
	}
	return "interrupted"
}

func (i interruption) Unwrap() error { return i.error }

// An output remembers that a write failed, for those who do not look: cobra prints help so.
type output struct {
	to  io.Writer
	err error // the first
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// commands are the constructors of the commands, in the order of their help.
var commands = []struct {
	name string
	make func() *cobra.Command
}{
	{"next", newNext}, {"decode", newDecode}, {"veil", newVeil}, {"unveil", newUnveil}, {"layout", newLayout},
	{"serve", newServe}, {"workers", newWorkers}, {"store", newStore}, {"doctor", newDoctor}, {"raise", newRaise}, {"import", newImport},
	{"verify", newVerify}, {"health", newHealth}, {"bench", newBench}, {"rehearse", newRehearse}, {"token", newToken}, {"emit", newEmit}, {"version", newVersion},
}

// addCommands adds the command that args begin with. If there is none, as for help and completions, it adds all. Making
// all of them, with their flags, would take as long as a lease.
func addCommands(root *cobra.Command, args []string) {
	for _, c := range commands {
		if len(args) > 0 && args[0] == c.name {
			root.AddCommand(c.make())
			root.CompletionOptions.DisableDefaultCmd = true
			return
		}
	}
	for _, c := range commands {
		root.AddCommand(c.make())
	}
	root.InitDefaultCompletionCmd()
	root.Flags().Bool("version", false, "print the version, as firn version") // see Main
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			onlyItsCommands(cmd)
		}
	}
}

// Command returns the command line with all commands, for its documents.
func Command() *cobra.Command { return newRoot(nil) }

// newRoot returns the command with what a command line needs of it.
func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "firn",
		Short: "Unique ids for distributed systems",
		Long: `firn generates unique, time-ordered 64-bit ids across any number of processes,
decodes them, and serves them over HTTP, gRPC and the Redis protocol.

  firn next -n 5          generate five ids
  firn decode ID          decode an id
  firn layout             list the layouts
  firn serve              serve ids on http://127.0.0.1:7070
  firn workers            list workers and their holders
  firn store replicas     show how many Redis replicas must confirm a write
  firn token              create a token for the server
  firn doctor             check the clock and the store
  firn health             ask the server here whether it is ready
  firn raise NAME LAST    make a counter go on above an id
  firn import leaf        import the counters of Leaf or TinyId
  firn verify FILE        find duplicates in a file of ids

Every flag can be set in the environment: --store as FIRN_STORE, and so on. The
command line overrides a configuration file, which overrides the environment.`,
		SilenceErrors:      true,
		DisableSuggestions: true, // those of package failure take one line
		SilenceUsage:       true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return usage(errors.Join(fromEnvironment(cmd.Flags()), misspelt(cmd.Flags(), os.Environ())))
		},
	}
	mode := parsed[string]{new(colourModes[0]), "string", parseColour, func(mode string) string { return mode }}
	root.PersistentFlags().Var(mode, "color", "colours: "+failure.List(colourModes, "or")+"; auto is for terminals, unless NO_COLOR is set")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(flagError(cmd.Flags(), err)) })
	root.SetHelpCommand(newHelp())
	addCommands(root, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(root)
	}
	return root
}

// onlyItsCommands makes a command that has only subcommands refuse other arguments. Cobra would show its help and exit
// with success.
func onlyItsCommands(cmd *cobra.Command) {
	names := subcommands(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(fmt.Errorf("%s %q: %s are allowed%s", cmd.Name(), args[0], strings.Join(names, ", "), guess(cmd, args[0])))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// subcommands returns the names of the commands of a command that are in its help.
func subcommands(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// guess ends an error about a command that does not exist.
func guess(cmd *cobra.Command, typed string) string {
	for _, sub := range cmd.Commands() {
		if slices.Contains(sub.SuggestFor, typed) {
			return ": did you mean " + sub.Name() + "?"
		}
	}
	return failure.DidYouMean(typed, subcommands(cmd))
}

// newHelp is cobra's help command, except that an unknown topic is wrong usage.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:              "help [COMMAND]",
		Short:            "Help about a command",
		PersistentPreRun: func(*cobra.Command, []string) {}, // help ignores the environment
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage(fmt.Errorf("unknown command %q", strings.Join(args, " ")))
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// asJSON reports whether --json is given.
func asJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("json")
	return f != nil && f.Value.String() == "true" // some commands print text alone
}

// answer prints a result: as JSON with --json, else as show does.
func answer(cmd *cobra.Command, result any, show func(io.Writer) error) error {
	if asJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
	}
	return show(cmd.OutOrStdout())
}

// atMostOne refuses a second argument as wrong usage.
func atMostOne(cmd *cobra.Command, args []string, name string) error {
	if len(args) > 1 {
		return usage(fmt.Errorf("%s takes one %s, but got %d", cmd.CommandPath(), name, len(args)))
	}
	return nil
}

// someIDs refuses no argument as wrong usage.
func someIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(fmt.Errorf("%s needs an id, or - to read them from standard input", cmd.Name()))
	}
	return nil
}

// noArgs refuses arguments as wrong usage.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || cmd.HasSubCommands():
		return usage(cobra.NoArgs(cmd, args))
	case cmd.Flags().Lookup("n") != nil && args[0] != "" && strings.Trim(args[0], "0123456789") == "":
		return usage(fmt.Errorf("%s takes no arguments, but got %q: for that many ids write -n %[2]s", cmd.CommandPath(), args[0]))
	case cmd.Flags().Lookup("http") != nil && args[0] != "" && strings.Trim(args[0], "0123456789") == "":
		return usage(fmt.Errorf("%s takes no arguments, but got %q: for that port write --http :%[2]s", cmd.CommandPath(), args[0]))
	default:
		return usage(fmt.Errorf("%s takes no arguments, but got %q", cmd.CommandPath(), args[0]))
	}
}
