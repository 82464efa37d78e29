// Package sparse decides which events are logged, of those that clients or the network cause as often as they like.
package sparse

import (
	"sync"
	"time"
)

// A Log lets one event pass in each interval. Make it with [Every]. Its methods may be called concurrently.
type Log struct {
	every time.Duration

	mu      sync.Mutex
	began   bool
	last    time.Duration // when an event passed
	omitted int           // since then
}

// Every returns a log for one event in an interval.
func Every(interval time.Duration) *Log { return &Log{every: interval} }

// Due reports whether an event is to be logged, and how many were omitted before it. Now is a monotonic clock's.
func (l *Log) Due(now time.Duration) (omitted int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began && now-l.last < l.every {
		l.omitted++
		return 0, false
	}
	omitted, l.began, l.last, l.omitted = l.omitted, true, now, 0
	return omitted, true
}
