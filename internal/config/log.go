package config

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// logWait is how long a caller waits for its record to be written, so that it stands before what the caller does next.
	logWait = 100 * time.Millisecond
	// maxRecords bounds the records that wait until a log takes them.
	maxRecords = 256
)

// A handler passes records on to another one, which may block: standard error may be a pipe that nothing reads. The
// goroutine that looks at a slot logs too, and must not stop for that: newcomers wait 12 s for it. So a caller waits for
// logWait at most, and not at all while earlier records still wait. Those that find no room are counted, but not what a log
// seldom takes: records below Info have only half of the room. The other
// handler is not embedded: its Enabled may wait for the same lock as its Handle, so only the writing goroutine calls both.
type handler struct {
	to      slog.Handler
	records *records
}

// records of one log. They are written in order by a goroutine, which ends when there are none left.
type records struct {
	mu      sync.Mutex
	waiting []record
	writing bool
	late    bool // a caller has waited in vain
	lost    int
}

type record struct {
	slog.Record
	ctx     context.Context // handlers read values from it
	to      slog.Handler
	written chan struct{}
}

// unblocked returns a log that never makes its caller wait for long. A handler with the method NeverBlocks is left as it
// is: that of a simulation, which must do one thing at a time.
func unblocked(log *slog.Logger) *slog.Logger {
	_, done := log.Handler().(handler)
	_, never := log.Handler().(interface{ NeverBlocks() })
	if done || never || log.Handler() == slog.DiscardHandler {
		return log
	}
	return slog.New(handler{log.Handler(), &records{}})
}

// Enabled implements [slog.Handler]. Whether a record is enabled is asked when it is written.
func (handler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler]. It returns no error of the handler behind it, as loggers report none.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	waits, written := h.records.add(record{r.Clone(), context.WithoutCancel(ctx), h.to, make(chan struct{})})
	if !waits {
		return nil
	}
	select {
	case <-written:
	case <-time.After(logWait):
		h.records.mu.Lock()
		h.records.late = h.records.writing
		h.records.mu.Unlock()
	}
	return nil
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.to.WithAttrs(attrs), h.records}
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.to.WithGroup(name), h.records}
}

// add reports whether the caller may wait until its record is written.
func (q *records) add(r record) (waits bool, written <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch debug := r.Level < slog.LevelInfo; {
	case debug && len(q.waiting) >= maxRecords/2:
		return false, nil
	case len(q.waiting) == maxRecords:
		q.lost++
		return false, nil
	}
	q.waiting = append(q.waiting, r)
	if !q.writing {
		q.writing = true
		go q.write()
	}
	return !q.late, r.written
}

func (q *records) write() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.writing, q.late = false, false
			q.mu.Unlock()
			return
		}
		r, lost := q.waiting[0], q.lost
		q.waiting, q.lost = q.waiting[1:], 0
		q.mu.Unlock()
		r.write(r.Record)
		if lost > 0 {
			notice := slog.NewRecord(time.Now(), slog.LevelWarn, "records of this log were lost, as it took none for a while", 0)
			notice.Add("records", lost)
			r.write(notice)
		}
		close(r.written)
	}
}

func (r record) write(text slog.Record) {
	if r.to.Enabled(r.ctx, text.Level) {
		_ = r.to.Handle(r.ctx, text)
	}
}
