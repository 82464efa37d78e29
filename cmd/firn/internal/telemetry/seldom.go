package telemetry

import (
	"sync"
	"time"
)

// A Seldom lets one event pass in each interval. Make it with [NewSeldom]. Its methods may be called concurrently.
type Seldom struct {
	every time.Duration

	mu      sync.Mutex
	began   bool
	last    time.Duration // when an event passed
	omitted int           // since then
}

// NewSeldom returns a log for one event in an interval.
func NewSeldom(interval time.Duration) *Seldom { return &Seldom{every: interval} }

// Due reports whether an event is to be logged, and how many were omitted before it. Now is a monotonic clock's.
func (l *Seldom) Due(now time.Duration) (omitted int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began && now-l.last < l.every {
		l.omitted++
		return 0, false
	}
	omitted, l.began, l.last, l.omitted = l.omitted, true, now, 0
	return omitted, true
}
