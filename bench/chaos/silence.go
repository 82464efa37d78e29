package main

import (
	"fmt"
	"sync"
	"time"
)

// A silence measures, for each mark, the longest time without an id of a namespace while the store was
// reachable. At least one process always runs without a fault.
type silence struct {
	mu      sync.Mutex
	since   map[string]time.Time // by namespace; missing before its first id
	away    int                  // how many faults make the store unreachable
	longest map[uint32]quiet
}

// A quiet is a time without an id of a namespace.
type quiet struct {
	time.Duration
	namespace string
}

func (q quiet) String() string {
	if q.Duration == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f s (%s)", q.Seconds(), q.namespace)
}

func newSilence() *silence {
	return &silence{since: map[string]time.Time{}, longest: map[uint32]quiet{}}
}

// arrived records that an id was received.
func (s *silence) arrived(mark uint32, namespace string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(mark, namespace, now)
	s.since[namespace] = now
}

func (s *silence) note(mark uint32, namespace string, now time.Time) {
	since, begun := s.since[namespace]
	if s.away > 0 || !begun {
		return
	}
	if d := now.Sub(since); d > s.longest[mark].Duration {
		s.longest[mark] = quiet{d, namespace}
	}
}

func (s *silence) noteAll(mark uint32, now time.Time) {
	for namespace := range s.since {
		s.note(mark, namespace, now)
	}
}

// leave records that the store becomes unreachable; back records that it is reachable again. The time
// until the next id counts from then.
func (s *silence) leave(mark uint32, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteAll(mark, now)
	s.away++
}

func (s *silence) back(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away--
	for namespace := range s.since {
		s.since[namespace] = now
	}
}

// away records that an act makes the store unreachable until back is called.
func (w *world) away(a act) (back func()) {
	w.silence.leave(a.mark, time.Now())
	return func() { w.silence.back(time.Now()) }
}

// end includes silences that have not ended, and returns the longest.
func (s *silence) end(mark uint32, now time.Time) map[uint32]quiet {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteAll(mark, now)
	return s.longest
}
