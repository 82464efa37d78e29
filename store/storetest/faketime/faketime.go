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
	defer t.mu.Unlock()
	t.slept += d
	t.pass(d)
	return nil
}

// Slept returns how long callers of Sleep have slept in total.
func (t *Time) Slept() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slept
}

// Pass advances both clocks.
func (t *Time) Pass(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass(d)
}

func (t *Time) pass(d time.Duration) {
	t.mono += d
	t.wall = t.wall.Add(d)
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
