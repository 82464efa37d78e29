package main

import (
	"sync"
	"time"
)

// A silence measures the longest time without an id, for each mark, while the store could
// be reached. Some process is always up, cut off by nothing: faults leave one alone.
type silence struct {
	mu      sync.Mutex
	since   time.Time
	away    int // how many faults keep the store away
	longest map[uint32]time.Duration
}

func newSilence() *silence { return &silence{longest: map[uint32]time.Duration{}} }

// arrived takes down that an id came.
func (s *silence) arrived(mark uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(mark)
	s.since = time.Now()
}

func (s *silence) note(mark uint32) {
	if s.away > 0 || s.since.IsZero() {
		return
	}
	s.longest[mark] = max(s.longest[mark], time.Since(s.since))
}

// leave takes down that the store goes away, back that it is there again: what it takes
// until the next id counts from then.
func (s *silence) leave(mark uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(mark)
	s.away++
}

func (s *silence) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away--
	s.since = time.Now()
}

// end counts a silence that has not ended.
func (s *silence) end(mark uint32) map[uint32]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(mark)
	return s.longest
}
