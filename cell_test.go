package firn

import (
	"context"
	"testing"
	"time"
)

// isOpen reports whether callers may use the word without asking the core.
func (g *Generator) isOpen() bool { return g.cell.Load().word.Load() < sealed }

// scriptedTime is a clock that shows the time in at.
type scriptedTime struct{ at time.Time }

func (s *scriptedTime) Wall() time.Time          { return s.at }
func (s *scriptedTime) Monotonic() time.Duration { return 0 }
func (s *scriptedTime) Sleep(_ context.Context, d time.Duration) error {
	s.at = s.at.Add(d)
	return nil
}

// While the clock is back, the word must stay sealed: a caller that overshoots the limit, or
// that read it long ago, could get a used position.
func TestTheWordIsSealedUntilTheClockHasCaughtUp(t *testing.T) {
	const back = 50 * time.Millisecond
	for name, cfg := range map[string]Config{
		"history": {Rollback: Rollback{History(1000, time.Second)}},
		"ahead":   {Rollback: Rollback{RunAhead(1000)}},
		"lead":    {Ahead: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &scriptedTime{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
			cfg.Clock, cfg.Time = ClockWall, clock
			cfg.Start = StartZero // a random start may use up a tick, and the wait would then move the clock
			g, err := New(0, cfg)
			if err != nil {
				t.Fatal(err)
			}
			next := func() {
				t.Helper()
				if _, err := g.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			next()
			for range 100 {
				clock.at = clock.at.Add(time.Millisecond)
				next()
			}
			if !g.isOpen() {
				t.Fatal("the word is sealed although the clock has not gone back")
			}
			front := clock.at
			clock.at = clock.at.Add(-back)
			for clock.at.Before(front) {
				next()
				if g.isOpen() {
					t.Fatalf("the word is open with the clock %v behind what it showed", front.Sub(clock.at))
				}
				clock.at = clock.at.Add(time.Millisecond)
			}
			clock.at = clock.at.Add(time.Millisecond)
			next()
			if !g.isOpen() {
				t.Error("the word stays sealed after the clock has caught up")
			}
		})
	}
}
