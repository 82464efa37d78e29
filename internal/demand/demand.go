// Package demand decides how many ids to prefetch: as many as callers use in a target time. It reads
// no clock: times and counts are arguments.
package demand

import (
	"math"
	"time"
)

// A Supply follows the demand for ids. Call Start before anything else.
type Supply struct {
	// Size is how many ids last for the target, within the limits; 0 before Start.
	Size int64

	at      time.Duration // when the present measuring window began
	count   int64         // ids issued until then
	elapsed time.Duration // the length of the window before it
	used    int64         // ids issued in the window before it
}

const (
	// maxGrowth and maxShrink bound how much the size changes at once: the size follows a burst in
	// a few steps, and shrinks little in a short lull.
	maxGrowth = 4
	maxShrink = 2
)

// Limits bound the size of a supply.
type Limits struct {
	Least, Most int64
	Target      time.Duration
}

// Start begins to measure, with the least size.
func (s *Supply) Start(now time.Duration, l Limits) { *s = Supply{Size: l.Least, at: now} }

// Measure adapts the size to the ids issued since the last change. A window that is too short to
// measure, as in a burst, stays open. Calm reports that the window that ended was much longer than
// the target.
func (s *Supply) Measure(now time.Duration, issued int64, l Limits) (calm bool) {
	elapsed, used := now-s.at, issued-s.count
	if used < max(s.Size/8, 1) && elapsed < l.Target/4 {
		return false
	}
	wanted := math.Inf(1)
	if elapsed > 0 {
		wanted = float64(used) * float64(l.Target) / float64(elapsed)
	}
	least, most := max(l.Least, s.Size/maxShrink), min(l.Most, s.Size*maxGrowth)
	s.Size = int64(min(max(wanted, float64(least)), float64(most)))
	s.at, s.count, s.elapsed, s.used = now, issued, elapsed, used
	return elapsed >= l.Target/4
}

// Rate returns the ids issued per second, over the present window and the one before it.
func (s *Supply) Rate(now time.Duration, issued int64) float64 {
	used, elapsed := s.window(now, issued)
	if elapsed <= 0 {
		return 0
	}
	return float64(used) / elapsed.Seconds()
}

// Lasts returns how long count ids last at that rate, at most some 292 years.
func (s *Supply) Lasts(now time.Duration, issued, count int64) time.Duration {
	used, elapsed := s.window(now, issued)
	switch {
	case count <= 0:
		return 0
	case used <= 0:
		return math.MaxInt64
	}
	return time.Duration(min(float64(count)/float64(used)*float64(elapsed), math.MaxInt64/2))
}

func (s *Supply) window(now time.Duration, issued int64) (used int64, elapsed time.Duration) {
	return issued - s.count + s.used, now - s.at + s.elapsed
}
