// Package faketime is for tests: a clock under the test's control; sleeping moves it.
package faketime

import (
	"context"
	"sync"
	"time"
)

// Time is a firn.TimeSource. Its methods may be called concurrently.
type Time struct {
	mu    sync.Mutex
	mono  time.Duration
	wall  time.Time
	slept time.Duration
	later []timer
}

// A timer is a call that AfterFunc has promised.
type timer struct {
	at time.Duration
	do func()
}

// New returns a time whose wall clock starts at the given time.
func New(at time.Time) *Time { return &Time{wall: at} }

// Wall returns the wall clock's time.
func (t *Time) Wall() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wall
}

// Monotonic returns the monotonic reading, which began at 0.
func (t *Time) Monotonic() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mono
}

// Sleep advances time at once, unless ctx has ended.
func (t *Time) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	t.slept += d
	t.mu.Unlock()
	t.Pass(d)
	return nil
}

// AfterFunc has the call of Pass or Sleep after which d has passed call do.
func (t *Time) AfterFunc(d time.Duration, do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.later = append(t.later, timer{t.mono + d, do})
}

// Timers returns how many calls AfterFunc has promised that are not due.
func (t *Time) Timers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.later)
}

// Slept returns how long callers of Sleep have slept in total.
func (t *Time) Slept() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slept
}

// Pass advances both clocks, and then makes the calls that are due.
func (t *Time) Pass(d time.Duration) {
	t.mu.Lock()
	t.mono += d
	t.wall = t.wall.Add(d)
	var due []timer
	left := t.later[:0]
	for _, call := range t.later {
		if call.at <= t.mono {
			due = append(due, call)
		} else {
			left = append(left, call)
		}
	}
	t.later = left
	t.mu.Unlock()
	for _, call := range due {
		call.do()
	}
}

// Step moves only the wall clock, forward or back.
func (t *Time) Step(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wall = t.wall.Add(d)
}

// Set sets only the wall clock.
func (t *Time) Set(wall time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wall = wall
}
