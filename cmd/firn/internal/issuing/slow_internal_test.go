package issuing

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// Of a generator that makes an id in an hour, neither the request that has the turn nor one behind it waits for ever,
// whatever its policies are.
func TestARequestWaitsForASlowGeneratorForAWhileOnly(t *testing.T) {
	for _, chain := range []string{"", "wait 500ms, history 10, refuse", "wait 1h, switch"} {
		policies, err := firn.ParseRollback(chain)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(firn.Config{Rollback: policies})
			hour := func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			began, ended := time.Now(), make(chan error, 2)
			for range 2 {
				go func() { ended <- q.take(t.Context(), 1, hour) }()
			}
			for range 2 {
				if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != longest {
					t.Errorf("%s: %v after %v", chain, err, time.Since(began))
				}
			}
			if err := q.take(t.Context(), 5, func(_ context.Context, n int) (int, error) { return n, nil }); err != nil {
				t.Errorf("%s: the turn is still taken: %v", chain, err)
			}
		})
	}
}

// The bound is that of the request, and not of each of its slices.
func TestARequestForManyIDsEndsAsOthersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began, slices := newQueue(firn.Config{}), time.Now(), 0
		second := func(ctx context.Context, n int) (int, error) {
			select {
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			case <-time.After(time.Second):
				slices++
				return n, nil
			}
		}
		if err := q.take(t.Context(), 100*q.slice, second); !errors.Is(err, slowError{}) || time.Since(began) != longest || slices != 9 && slices != 10 {
			t.Errorf("%v after %v and %d slices", err, time.Since(began), slices)
		}
	})
}

func TestARequestForMoreIDsThanCanBeMadeInTimeIsRefusedAtOnce(t *testing.T) {
	of := func(layout string) firn.Layout {
		l, err := firn.ParseLayout(layout)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, c := range []struct {
		g    firn.Config
		most int
	}{
		{firn.Config{Clock: firn.ClockWall}, 40_000*1024 + 2*4096},
		{firn.Config{Layout: of("sonyflake"), Clock: firn.ClockWall}, 1000*256 + 2*256},
		{firn.Config{Layout: of("sonyflake"), Clock: firn.ClockVirtual}, math.MaxInt},
	} {
		q := newQueue(c.g)
		if q.most != c.most {
			t.Errorf("%s: at most %d, want %d", c.g.Layout.Bits(), q.most, c.most)
		}
		calls := 0
		take := func(_ context.Context, n int) (int, error) { calls++; return n, nil }
		if c.most == math.MaxInt {
			continue
		}
		if err := q.take(t.Context(), c.most, take); err != nil || calls == 0 {
			t.Error(err)
		}
		calls = 0
		if err := q.take(t.Context(), c.most+1, take); failure.Of(err).Code != "batch_too_large" || calls != 0 {
			t.Errorf("%v after %d calls", err, calls)
		}
	}
}
