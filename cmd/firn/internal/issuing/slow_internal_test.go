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
	"github.com/firn-id/firn/lease"
)

// Of a generator that makes an id in an hour, neither the request that has the turn nor one behind it waits for ever,
// whatever its policies are.
func TestARequestWaitsForASlowGeneratorForAWhileOnly(t *testing.T) {
	for _, c := range []struct {
		chain string
		lasts time.Duration
	}{
		{"", longest},
		{"wait 500ms, history 10, refuse", longest + 1500*time.Millisecond}, // twice, and once
		{"wait 5m 3, refuse", longest + 15*time.Minute},
		{"wait 1s 1, switch", longest + time.Second + longest + time.Minute},
	} {
		policies, err := firn.ParseRollback(c.chain)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(lease.Config{Generator: firn.Config{Rollback: policies}, Strict: time.Minute})
			hour := func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			began, ended := time.Now(), make(chan error, 2)
			for range 2 {
				go func() { ended <- q.take(t.Context(), 1, hour) }()
			}
			for range 2 {
				if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != c.lasts {
					t.Errorf("%s: %v after %v", c.chain, err, time.Since(began))
				}
			}
			if err := q.take(t.Context(), 5, func(_ context.Context, n int) (int, error) { return n, nil }); err != nil {
				t.Errorf("%s: the turn is still taken: %v", c.chain, err)
			}
		})
	}
}

// The bound is that of a slice: if it were that of the request, all would fail where several want what is made in that time.
func TestARequestForManyIDsEndsIfItWaitsAndNotWhileItGetsIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, ended := newQueue(lease.Config{}), make(chan error, 5)
		for range cap(ended) {
			go func() {
				ended <- q.take(t.Context(), 10*q.slice, func(ctx context.Context, n int) (int, error) {
					select {
					case <-ctx.Done():
						return 0, context.Cause(ctx)
					case <-time.After(time.Second):
						return n, nil
					}
				})
			}()
		}
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
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
		q := newQueue(lease.Config{Generator: c.g})
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
