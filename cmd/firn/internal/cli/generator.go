package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// layoutFlags name a layout.
type layoutFlags struct {
	layout, unit, epoch string
}

func (f *layoutFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.layout, "layout", "firn", "layout: a preset (see firn layout) or bits as 41/0/10/12")
	cmd.Flags().StringVar(&f.unit, "unit", "", "length of a tick, as 1ms (default: the layout's)")
	cmd.Flags().StringVar(&f.epoch, "epoch", "", "when ticks begin: RFC 3339, a date or Unix milliseconds (default: the layout's)")
}

func (f *layoutFlags) parse() (firn.Layout, error) {
	return decode.Layout(f.layout, f.unit, f.epoch)
}

// generatorFlags say how ids are made, and where the worker comes from.
type generatorFlags struct {
	layoutFlags
	storeFlags
	worker               int64
	datacenter           int64
	clock, rollback      string
	start                string
	ahead, window        time.Duration
	strict               time.Duration
	pinnedAhead, verbose bool
}

// strictWindow is the default window in a strict pool. It must be sixteen tolerances and
// a unit there, which is 160s and a little with most layouts.
const strictWindow = 3 * time.Minute

func (f *generatorFlags) add(cmd *cobra.Command, window time.Duration) {
	f.layoutFlags.add(cmd)
	flags := cmd.Flags()
	f.storeFlags.add(cmd)
	f.makes = true
	flags.Int64Var(&f.worker, "worker", -1, "take this worker and no other (default: the one idle longest)")
	flags.Lookup("worker").DefValue = "0" // the help says in words what -1 stands for
	flags.BoolVar(&f.pinnedAhead, "worker-ahead", false, "with --worker: do not wait until its fence has passed, issue times above it")
	flags.Int64Var(&f.datacenter, "datacenter", 0, "datacenter number, in layouts that have one")
	flags.StringVar(&f.clock, "clock", "steady", "where time comes from: steady, wall or virtual")
	flags.StringVar(&f.rollback, "rollback", "", `with --clock wall, what is tried when it goes back, as "wait 500ms, history 2000, switch, refuse"`)
	flags.DurationVar(&f.ahead, "ahead", 0, "how far ids may run ahead of the clock; negative: not at all (default: 10ms with clock steady)")
	flags.StringVar(&f.start, "start", "carry", "where the sequence begins in a new tick: carry, zero or random")
	flags.DurationVar(&f.window, "window", window, "how far the fence is kept ahead: the store outage that is survived; with --strict 3m unless it is set, 161s at least")
	flags.DurationVar(&f.strict, "strict", 0, "how long a claim waits before it is used, so that not even a store that forgot its holders makes a duplicate: the longest window of the pool and 41s at least; all who join need the same; needs Redis, MySQL or PostgreSQL (default: no wait)")
	flags.BoolVar(&f.verbose, "verbose", false, "log to standard error what the lease, or the counter, does")
}

// config returns the lease the flags ask for, but for its store.
func (f *generatorFlags) config(stderr io.Writer) (lease.Config, error) {
	var errs []error
	layout, err := f.parse()
	errs = append(errs, err, f.checkPool())
	clock, err := firn.ParseClock(f.clock)
	errs = append(errs, err)
	rollback, err := firn.ParseRollback(f.rollback)
	errs = append(errs, err)
	start, err := firn.ParseSequenceStart(f.start)
	errs = append(errs, err)
	if f.strict > 0 && !f.flags.Changed("window") {
		f.window = max(f.window, strictWindow)
	}
	cfg := lease.Config{
		Pool: f.pool, PinnedAhead: f.pinnedAhead, Strict: f.strict,
		Generator: firn.Config{
			Layout: layout, Datacenter: f.datacenter, Clock: clock, Rollback: rollback, Ahead: f.ahead, Start: start,
		},
		Window: f.window,
	}
	if f.worker >= 0 {
		cfg.Pinned = &f.worker
	} else if f.flags.Changed("worker") {
		errs = append(errs, firn.NewRangeError("worker", f.worker, 0, layout.MaxWorker(), "layout "+layout.Bits()))
	}
	switch {
	case f.verbose:
		cfg.Log = f.log(stderr)
	case isTerminal(stderr):
		cfg.Log = slog.New(&waiting{stderr}) // or nothing would be seen for seconds
	}
	return cfg, errors.Join(errs...)
}

// log receives events with --verbose; nil without.
func (f *generatorFlags) log(stderr io.Writer) *slog.Logger {
	if !f.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// misuse marks as wrong usage what a flag's value is to blame for, and not what
// somebody has put into the store.
func misuse(err error) error {
	if errors.Is(err, store.ErrForeign) {
		return err
	}
	if errors.Is(err, firn.ErrSyntax) || errors.Is(err, firn.ErrRange) {
		return usage(err)
	}
	return err
}

// writer turns ids into text in one of the formats of --format.
type writer struct {
	layout   firn.Layout
	encoding firn.Encoding
	compact  bool
	readable bool
}

const formatHelp = "decimal, hex, base32, base36, base58, base62, base64, base64url, readable; with :fixed also decimal:fixed and so on"

// newWriter reads --format: an encoding, which is written in fixed width but for
// decimal, or with :compact or :fixed as said; or readable.
func newWriter(format string, layout firn.Layout) (writer, error) {
	w := writer{layout: layout}
	if format == "readable" {
		w.readable = true
		return w, nil
	}
	name, width, given := strings.Cut(format, ":")
	e, err := firn.ParseEncoding(name)
	if err != nil {
		return w, fmt.Errorf("%w; so is readable", err)
	}
	w.encoding, w.compact = e, e == firn.Decimal
	switch {
	case given && width == "fixed":
		w.compact = false
	case given && width == "compact":
		w.compact = true
	case given:
		return w, firn.NewSyntaxError("format", format, "after the colon, fixed and compact are allowed")
	}
	return w, nil
}

func (w writer) append(dst []byte, id firn.ID) ([]byte, error) {
	switch {
	case w.readable:
		text, err := w.layout.Readable(id)
		return append(dst, text...), err
	case w.compact:
		return w.encoding.AppendCompact(dst, id), nil
	default:
		return w.encoding.AppendFixed(dst, id), nil
	}
}
