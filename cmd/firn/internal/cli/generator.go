package cli

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// layoutFlags are the flags that describe a layout.
type layoutFlags struct{ set settings.Namespace }

func (f *layoutFlags) add(cmd *cobra.Command) {
	addSettings(cmd.Flags(), &f.set, flagged("layout", "unit", "epoch"))
}

func (f *layoutFlags) parse() (firn.Layout, error) {
	return decode.Layout(f.set.Layout, f.set.Unit, f.set.Epoch)
}

// generatorFlags are the flags of a generator and its lease.
type generatorFlags struct {
	layoutFlags
	storeFlags
	pinnedAhead, verbose bool
}

// strictWindow is the default window in a strict pool, where a window must be at least sixteen tolerances and a unit:
// a little more than 160s with most layouts.
const strictWindow = 3 * time.Minute

func (f *generatorFlags) add(cmd *cobra.Command, window time.Duration) {
	flags := cmd.Flags()
	f.storeFlags.add(cmd)
	f.makes = true
	addSettings(flags, &f.set, settings.Group(settings.Pooled{}))
	setDefault(flags, "window", window.String())
	flags.Lookup("window").Usage = flagged("window")[0].Help + " and the default 3m"
	flags.BoolVar(&f.pinnedAhead, "worker-ahead", false, "with --worker: do not wait until its fence has passed; issue ids with times after it")
	flags.BoolVar(&f.verbose, "verbose", false, "log what the lease or the counter does to standard error")
}

// config returns the lease that the flags describe, without its store.
func (f *generatorFlags) config(stderr io.Writer) (lease.Config, error) {
	return f.configOf(settings.Kinds[0].Only(f.set), stderr)
}

// configOf is config for the settings of one kind.
func (f *generatorFlags) configOf(set settings.Namespace, stderr io.Writer) (lease.Config, error) {
	if err := f.checkPool(); err != nil {
		return lease.Config{}, err
	}
	if set.Strict > 0 && !f.flags.Changed("window") {
		set.Window = max(set.Window, settings.Duration(strictWindow))
	}
	set.Pool = f.pool
	if err := mistaken(f.flags, set); err != nil {
		return lease.Config{}, err
	}
	cfg, err := set.Lease()
	if cfg.PinnedAhead = f.pinnedAhead; f.pinnedAhead && cfg.Pinned == nil {
		return cfg, usage(errors.New("--worker-ahead takes a fixed worker before its fence has passed: name it with --worker"))
	}
	cfg.Log = f.log(stderr, false)
	return cfg, err
}

// log returns the log of the lease, or of the counter, whose errors the command returns.
func (f *generatorFlags) log(stderr io.Writer, noErrors bool) *slog.Logger {
	if !f.verbose {
		return slog.New(&notices{out: stderr, noErrors: noErrors})
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// misuse marks an error as wrong usage if a flag's value caused it, but not if the content of the store did.
func misuse(err error) error {
	if errors.Is(err, store.ErrForeign) {
		return err
	}
	if errors.Is(err, firn.ErrSyntax) || errors.Is(err, firn.ErrRange) {
		return usage(err)
	}
	return err
}

// encodingHelp lists the encodings.
var encodingHelp = strings.Join(decode.Encodings(), ", ")
