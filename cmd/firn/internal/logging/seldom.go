// Package logging bounds what a log costs: which of many events are logged, and that nothing waits for whoever reads it.
package logging

import (
	"sync"
	"time"
)

// A Seldom lets one event pass in each interval. Make it with [Every]. Its methods may be called concurrently.
type Seldom struct {
	every time.Duration

	mu      sync.Mutex
	began   bool
	last    time.Duration // when an event passed
	omitted int           // since then
}

// Every returns a log for one event in an interval.
func Every(interval time.Duration) *Seldom { return &Seldom{every: interval} }

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
