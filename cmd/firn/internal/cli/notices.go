package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
)

// isTerminal reports whether the output is a terminal.
func isTerminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.to
	}
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// notices is the log without --verbose. It writes warnings; what the command waits for, since to join a pool may take
// seconds; and that a counter is new, since its name may be misspelt.
type notices struct {
	out      io.Writer
	noErrors bool // leave out records with an error, which the command returns too
}

// Enabled implements [slog.Handler].
func (w *notices) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (w *notices) Handle(_ context.Context, r slog.Record) error {
	line, shown, failed := "firn: "+r.Message, r.Level >= slog.LevelWarn, false
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(", %s %v", a.Key, a.Value)
		switch a.Key {
		case "error":
			failed = true
		case "for", "until", "first": // see the Config.Log of leases and counters
			shown = true
		}
		return true
	})
	if !shown || failed && w.noErrors {
		return nil
	}
	_, err := fmt.Fprintln(w.out, plain(line))
	return err
}

// WithAttrs implements [slog.Handler].
func (w *notices) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements [slog.Handler].
func (w *notices) WithGroup(string) slog.Handler { return w }
