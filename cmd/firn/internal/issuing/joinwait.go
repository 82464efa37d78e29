package issuing

import (
	"context"
	"log/slog"
	"time"
)

// longestRetry bounds Retry-After of a pool that is being joined: another server may be ready earlier.
const longestRetry = 10 * time.Second

// A joinWait is what joining a pool waits for, see the Log of [lease.Config].
type joinWait struct {
	reason string
	ends   time.Time
}

func (w *joinWait) String() string {
	return w.reason + ", until " + w.ends.UTC().Format(time.RFC3339)
}

// A joinLog passes records on, and keeps the latest wait that they announce for those who ask for ids meanwhile.
type joinLog struct {
	slog.Handler
	pool *pool
}

// Enabled implements [slog.Handler]: a log of warnings alone leaves waits out.
func (l *joinLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || l.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (l *joinLog) Handle(ctx context.Context, r slog.Record) error {
	w := joinWait{reason: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value; {
		case a.Key == "for" && v.Kind() == slog.KindDuration:
			w.ends = r.Time.Add(v.Duration())
		case a.Key == "until" && v.Kind() == slog.KindTime:
			w.ends = v.Time()
		case a.Key == "because":
			w.reason += ", since " + v.String()
		}
		return true
	})
	if !w.ends.IsZero() {
		l.pool.wait.Store(&w)
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l *joinLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &joinLog{l.Handler.WithAttrs(attrs), l.pool}
}

// WithGroup implements [slog.Handler].
func (l *joinLog) WithGroup(name string) slog.Handler {
	return &joinLog{l.Handler.WithGroup(name), l.pool}
}
