package firn

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A shaky clock panics at one of the next readings. Its sleeps take no time.
type shaky struct {
	at   time.Time
	left int
}

func (s *shaky) Wall() time.Time {
	if s.left--; s.left == 0 {
		panic("shaky")
	}
	return s.at
}

func (s *shaky) Monotonic() time.Duration { return 0 }

func (s *shaky) Sleep(_ context.Context, d time.Duration) error {
	s.at = s.at.Add(d)
	return nil
}

// Programs recover from panics of a handler, and go on.
func TestAPanicOfTheClockHoldsNoLaterCallUp(t *testing.T) {
	panics := 0
	for n := 1; n < 10; n++ {
		clock, worker := &shaky{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, int64(7)
		g, err := New(worker, Config{
			Clock: ClockWall, Time: clock, Rollback: Rollback{Wait(4*time.Second, 1), SwitchWorker()},
			Switch: func(_ context.Context, from Tick) (Grant, error) {
				worker++
				return Grant{Worker: worker, After: from, Through: 1 << 40}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		clock.at = clock.at.Add(time.Second)
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.at, clock.left = clock.at.Add(-time.Hour), n
		func() {
			defer func() {
				switch why := recover(); why {
				case "shaky":
					panics++
				case nil:
				default:
					t.Error(why)
				}
			}()
			if id, err := g.Next(t.Context()); err != nil {
				t.Errorf("reading %d: %v, %v", n, id, err)
			}
		}()
		clock.left = 0
		if !g.mu.TryLock() {
			t.Fatalf("reading %d: the generator is locked", n)
		}
		g.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if id, err := g.Next(ctx); errors.Is(err, context.Canceled) {
			t.Errorf("reading %d: %v, %v", n, id, err)
		}
	}
	if panics == 0 || panics == 9 {
		t.Errorf("%d of 9 calls met the panic: each reading of a call must, and the last calls none", panics)
	}
}
