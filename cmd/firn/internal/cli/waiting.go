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

// waiting is the log without --verbose. It writes warnings, and what the command waits for: to join a pool may take
// seconds.
type waiting struct{ out io.Writer }

// Enabled implements [slog.Handler].
func (w *waiting) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (w *waiting) Handle(_ context.Context, r slog.Record) error {
	line, shown := "firn: "+r.Message, r.Level >= slog.LevelWarn
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(", %s %v", a.Key, a.Value)
		shown = shown || a.Key == "for" || a.Key == "until" // it announces a wait, see lease.Config.Log
		return true
	})
	if !shown {
		return nil
	}
	_, err := fmt.Fprintln(w.out, plain(line))
	return err
}

// WithAttrs implements [slog.Handler].
func (w *waiting) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements [slog.Handler].
func (w *waiting) WithGroup(string) slog.Handler { return w }
