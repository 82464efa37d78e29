package issuing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/lease"
)

// A scarce source has no id at once, and needs a millisecond for each slice.
type scarce struct{ slices []int }

func (s *scarce) take(ctx context.Context, n int) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	time.Sleep(time.Millisecond)
	s.slices = append(s.slices, n)
	return n, nil
}

func addresses(t *testing.T) (here, there context.Context) {
	t.Helper()
	s := share.New(share.Limits{HTTP: 1000, Redis: 1000, Requests: 1000, Percent: 100})
	return share.With(t.Context(), s.Client("10.0.0.1:1")), share.With(t.Context(), s.Client("10.0.0.2:1"))
}

func TestAnAddressThatAsksForMoreIDsThanThereAreDelaysOthersByASlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, from := newQueue(lease.Config{}), &scarce{}
		if q.slice != 4096 {
			t.Fatalf("a slice has %d ids", q.slice)
		}
		here, there := addresses(t)
		for range 20 {
			go func() {
				if err := q.take(here, 10*q.slice, from.take); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(10*time.Millisecond + time.Microsecond)
		began := time.Now()
		for range 4 { // they wait for the slice under way, and each for one more
			go func() {
				if err := q.take(there, 1, from.take); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 9*time.Millisecond {
					t.Errorf("an id took %v", took)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(from.slices); n != 204 {
			t.Errorf("%d slices", n)
		}
		for i, n := range from.slices[11:18] {
			if single := n == 1; single != (i%2 == 1) {
				t.Errorf("the turns do not alternate: %v", from.slices[11:18])
				break
			}
		}
		if q.taken || len(q.next)+len(q.lines) != 0 || q.inside.Load() != 0 {
			t.Error("the queue is not empty")
		}
	})
}

func TestARequestThatEndsLosesItsTurnToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, from := newQueue(lease.Config{}), &scarce{}
		here, there := addresses(t)
		why := errors.New("gone")
		failed := make(chan error, 4)
		hang := func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, context.Cause(ctx) }
		for i := range 4 { // the first has the turn, the others wait for it
			ctx, cancel := context.WithCancelCause(here)
			go func() { failed <- q.take(ctx, 1, hang) }()
			defer time.AfterFunc(time.Duration(4-i)*time.Second, func() { cancel(why) }).Stop()
			synctest.Wait()
		}
		go func() {
			defer func() { _ = recover() }()
			_ = q.take(there, 1, func(ctx context.Context, _ int) (int, error) {
				if ctx.Err() == nil {
					panic("a fault")
				}
				return 0, context.Cause(ctx)
			})
		}()
		synctest.Wait()
		began := time.Now()
		if err := q.take(there, 1, from.take); err != nil || time.Since(began) != 4*time.Second+time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for range cap(failed) {
			if err := <-failed; !errors.Is(err, why) {
				t.Error(err)
			}
		}
		if q.taken || len(q.next)+len(q.lines) != 0 || q.inside.Load() != 0 {
			t.Error("the queue is not empty")
		}
	})
}

// Errors that no wait would end come at once, and ids that need no wait do not enter the queue.
func TestWhatNeedsNoWaitDoesNotEnterTheQueue(t *testing.T) {
	q := newQueue(lease.Config{})
	calls := 0
	for _, want := range []error{nil, firn.ErrClosed} {
		err := q.take(t.Context(), 100_000, func(ctx context.Context, n int) (int, error) {
			if calls++; ctx.Err() == nil || n != 100_000 {
				t.Error("it waits for its turn")
			}
			return n, want
		})
		if !errors.Is(err, want) || calls == 0 {
			t.Error(err)
		}
	}
}

// Asked with a context that has ended, "switch, ahead 100000" would go ahead of the clock without trying another worker.
func TestAPoolThatMaySwitchWorkersIsAskedWithTheRequestsContext(t *testing.T) {
	policies, err := firn.ParseRollback("switch, ahead 100000")
	if err != nil {
		t.Fatal(err)
	}
	q := newQueue(lease.Config{Generator: firn.Config{Rollback: policies}})
	err = q.take(t.Context(), 1, func(ctx context.Context, n int) (int, error) {
		if ctx.Err() != nil {
			t.Error("it is asked with a context that has ended")
		}
		return n, nil
	})
	if err != nil {
		t.Error(err)
	}
}
