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
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// waiting is a log for a waiting person: one line that says what the command waits for.
type waiting struct{ out io.Writer }

// Enabled implements [slog.Handler].
func (w *waiting) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (w *waiting) Handle(_ context.Context, r slog.Record) error {
	line := "firn: " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(", %s %v", a.Key, a.Value)
		return true
	})
	_, err := fmt.Fprintln(w.out, line)
	return err
}

// WithAttrs implements [slog.Handler].
func (w *waiting) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements [slog.Handler].
func (w *waiting) WithGroup(string) slog.Handler { return w }
