package issuing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// Of a generator that makes an id in an hour, neither the request that has the turn nor one behind it waits for ever.
func TestARequestWaitsForASlowGeneratorForAWhileOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(firn.DefaultLayout(), nil)
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
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		if err := q.take(t.Context(), 5, func(_ context.Context, n int) (int, error) { return n, nil }); err != nil {
			t.Errorf("the turn is still taken: %v", err)
		}
	})
}
