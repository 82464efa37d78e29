package objectid_test

import (
	"context"
	"sync"
	"time"
)

// fakeTime is a machine's time under a test's control: sleeping moves it.
type fakeTime struct {
	mu    sync.Mutex
	mono  time.Duration
	wall  time.Time
	slept time.Duration
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newFakeTime() *fakeTime { return &fakeTime{wall: noon} }

func (f *fakeTime) Wall() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wall
}

func (f *fakeTime) Monotonic() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mono
}

func (f *fakeTime) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slept += d
	f.mono += d
	f.wall = f.wall.Add(d)
	return nil
}

// pass lets time go by on both clocks.
func (f *fakeTime) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mono += d
	f.wall = f.wall.Add(d)
}

// step sets the wall clock forward or back.
func (f *fakeTime) step(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(d)
}
