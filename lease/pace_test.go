package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// slowing is a store whose calls take a time, and whose writes hang if that is set.
type slowing struct {
	store.Store
	takes atomic.Int64 // ns
	hangs atomic.Bool
}

func (s *slowing) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, context.Cause(ctx))
	}
}

func (s *slowing) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.wait(ctx, time.Duration(s.takes.Load())); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *slowing) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if err := s.wait(ctx, time.Duration(s.takes.Load())); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

func (s *slowing) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	takes := time.Duration(s.takes.Load())
	if s.hangs.Load() {
		takes = time.Hour
	}
	if err := s.wait(ctx, takes); err != nil {
		return store.Entry{}, err
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

func slow(takes time.Duration) *slowing {
	var s slowing
	s.takes.Store(int64(takes))
	return &s
}

// live starts a holder over a store that the test slows down, in the time of a bubble.
func (w *world) live(s *slowing, window time.Duration, change ...func(*Config)) *Lease {
	w.t.Helper()
	time.Sleep(time.Until(noon))
	s.Store = w.store
	cfg := w.config(append([]func(*Config){func(c *Config) {
		c.Store, c.Generator.Time, c.Window = remote{s, time.Now, nil}, nil, window
	}}, change...)...)
	return must(keep(w.t.Context(), must(newPoolSource(cfg)), cfg))
}

// longest makes an id every 50 ms for a time, and returns the longest wait for one.
func longest(t *testing.T, l *Lease, d time.Duration) (longest time.Duration) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(50 * time.Millisecond) {
		asked := time.Now()
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatalf("after %v, a call of %v: %v; %+v", time.Since(begin), time.Since(asked), err, l.State())
		}
		longest = max(longest, time.Since(asked))
	}
	return longest
}

// A store that reads and cannot write, such as one whose synchronous standby is away, delays no ids.
func TestWritesThatHangDelayNoIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := slow(time.Millisecond)
		l := w.live(s, 5*time.Minute)
		defer l.Close(context.Background())
		longest(t, l, 140*time.Second)
		s.hangs.Store(true)
		if wait := longest(t, l, 2*time.Minute); wait > 50*time.Millisecond {
			t.Errorf("a call waited for %v; %+v", wait, l.State())
		}
		s.hangs.Store(false)
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A worker is lost while the store is slow: calls may wait for looks, but none fails, as long as the fence of the lost
// one lies ahead.
func TestALossBesideASlowStoreFailsNoCall(t *testing.T) {
	for _, takes := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, 1900 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := &slowing{}
				l := w.live(s, 2*time.Minute)
				defer l.Close(context.Background())
				longest(t, l, 10*time.Second)
				lost := l.State().Worker
				w.steal(l)
				s.takes.Store(int64(takes))
				wait := longest(t, l, 50*time.Second)
				if got := l.State(); got.Worker == lost || got.Losses != 1 {
					t.Errorf("%+v", got)
				}
				if wait > 2*time.Second {
					t.Errorf("a call waited for %v", wait)
				}
				if err := l.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// steal gives a worker to another process, from its fence on.
func (w *world) steal(l *Lease) {
	w.t.Helper()
	s := l.State()
	w.put(slotKey("default", l.gen.Layout(), 0, s.Worker), must(register.Encode(Slot{
		After: s.Fence, Fence: s.Fence + 60_000, Owner: "another", Write: 1000, Since: time.Now(), At: time.Now(),
	})))
}

// The store hangs during the search for another worker: looks go on, so ids do too.
func TestAnOutageAfterALossFailsNoCall(t *testing.T) {
	for after := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := slow(600 * time.Millisecond)
			l := w.live(s, 10*time.Minute)
			defer l.Close(context.Background())
			longest(t, l, 5*time.Second)
			w.steal(l)
			time.Sleep(time.Duration(after) * 100 * time.Millisecond)
			s.takes.Store(int64(time.Hour))
			if wait := longest(t, l, 3*time.Minute); wait > 50*time.Millisecond {
				t.Errorf("it hangs %d ms after the loss: a call waited for %v", 100*after, wait)
			}
			s.takes.Store(int64(0))
		})
	}
}

// No other worker is free. A look that finds the loss shows that the ticks are its own still.
func TestALossInAFullPoolAndAStopFailNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, clock := slow(time.Millisecond), &stepped{TimeSource: firn.SystemTime()}
		l := w.live(s, 10*time.Minute, func(c *Config) { c.Generator.Layout, c.Generator.Time = layout("41/0/0/12"), clock })
		defer l.Close(context.Background())
		longest(t, l, 5*time.Second)
		w.steal(l)
		longest(t, l, 5*time.Second)
		clock.back.Store(-int64(8 * time.Second))
		if wait := longest(t, l, time.Minute); wait > 50*time.Millisecond {
			t.Errorf("a call waited for %v", wait)
		}
	})
}

// After a stop a network may need a moment.
func TestCallsWaitWhileLooksFailAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		clock := &stepped{TimeSource: firn.SystemTime()}
		l := w.live(&slowing{}, time.Minute, func(c *Config) { c.Generator.Time, c.Generator.Clock = clock, firn.ClockWall })
		defer l.Close(context.Background())
		longest(t, l, 5*time.Second)
		w.store.SetDown(true)
		clock.back.Store(-int64(8 * time.Second))
		time.AfterFunc(2*time.Second, func() { w.store.SetDown(false) })
		if wait := longest(t, l, 20*time.Second); wait < time.Second || wait > 3*time.Second {
			t.Errorf("a call waited for %v", wait)
		}
	})
}

// Ids that run ahead of the clock do not make a look overdue.
func TestABurstAheadOfTheClockGoesOnWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.live(&slowing{}, time.Minute, func(c *Config) { c.Generator.Ahead = 9 * time.Second })
		defer l.Close(context.Background())
		time.Sleep(10 * time.Second)
		w.store.SetDown(true)
		for range 3 {
			ids := make([]firn.ID, 8<<22)
			if n, err := l.Fill(t.Context(), ids); err != nil {
				t.Errorf("after %d: %v", n, err)
			}
			time.Sleep(8 * time.Second)
		}
	})
}
