package telemetry

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// room bounds the bytes that wait. An audit log and a log have the most text where callers are refused: a few hundred
	// bytes for each of some hundred records in ten seconds.
	room = 1 << 20
	// overhead is what a record that waits occupies beside its bytes.
	overhead = 64
	// ends is how long Close waits.
	ends = time.Second
)

// A Queue is a writer of records that never waits. Each Write is one record. Records that find no room, since the ones
// before them are not written yet, are lost and counted. Its methods may be called concurrently. Make one with [NewQueue].
type Queue struct {
	to   io.Writer
	lost func(records int64) []byte
	end  func() error
	done chan struct{}
	err  error // of end; set once done is closed

	mu      sync.Mutex // guards the fields below; never held during a write
	waiting [][]byte
	size    int   // what waiting occupies
	missing int64 // records lost since the last line that said so
	total   int64 // records lost
	closed  bool
	wake    *sync.Cond
}

// NewQueue returns a queue in front of a writer. After records were lost it writes what lost returns, once the writer takes
// some again. It calls end, if that is not nil, after the last record.
func NewQueue(to io.Writer, lost func(records int64) []byte, end func() error) *Queue {
	q := &Queue{to: to, lost: lost, end: end, done: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write implements [io.Writer]. Its error is always nil: a logger could not do anything about it.
func (q *Queue) Write(record []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(record) + overhead
	if q.closed || q.size+size > room {
		q.missing++
		q.total++
		return len(record), nil
	}
	q.waiting = append(q.waiting, append([]byte(nil), record...))
	q.size += size
	q.wake.Signal()
	return len(record), nil
}

// Lost returns how many records were lost: those without room, and those whose write failed.
func (q *Queue) Lost() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// Close writes what waits, for at most a second, and discards what is written later. It may be called again.
func (q *Queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.wake.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-time.After(ends):
		return errUnread
	}
}

var errUnread = errors.New("the last records of the log were not written within a second: whatever reads it does not")

func (q *Queue) run() {
	defer close(q.done)
	for {
		records, missing := q.next()
		var failed int64
		for _, r := range records {
			if _, err := q.to.Write(r); err != nil {
				failed++
			}
		}
		if missing > 0 && failed == 0 {
			if _, err := q.to.Write(q.lost(missing)); err == nil {
				missing = 0
			}
		}
		q.mu.Lock()
		q.total += failed
		q.missing += missing + failed
		q.mu.Unlock()
		if len(records) == 0 {
			break
		}
	}
	if q.end != nil {
		q.err = q.end()
	}
}

// next waits for records, and returns them in their order, and how many were lost after them. After Close it returns
// what is left, then nothing.
func (q *Queue) next() (records [][]byte, missing int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.wake.Wait()
	}
	records, q.waiting, q.size = q.waiting, nil, 0
	missing, q.missing = q.missing, 0
	return records, missing
}

// LostLine returns the lost of [NewQueue] for a log in the format of a handler.
func LostLine(handler func(io.Writer) slog.Handler, message string) func(records int64) []byte {
	return func(records int64) []byte {
		var line bytes.Buffer
		slog.New(handler(&line)).Warn(message, "records", records)
		return line.Bytes()
	}
}
