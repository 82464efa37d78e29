package turns_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn/internal/turns"
)

func TestCallersEndSomethingOneAfterAnotherUntilOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e turns.Ending
		away := errors.New("away")
		release := make(chan error)
		calls, running := 0, 0
		got := make(chan error, 4)
		do := func(ctx context.Context) {
			got <- e.Do(ctx, nil, "close", func() error {
				if running++; running > 1 {
					t.Error("two at a time")
				}
				calls++
				err := <-release
				running--
				return err
			})
		}
		for range 3 {
			go do(t.Context())
		}
		ctx, cancel := context.WithCancel(t.Context())
		synctest.Wait()
		go do(ctx)
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) || err.Error() != "close: context canceled" {
			t.Errorf("a caller whose context ended in the wait: %v", err)
		}
		for i, want := range []error{away, nil, nil} { // the third finds that the second has succeeded
			if i < 2 {
				release <- want
			}
			if err := <-got; !errors.Is(err, want) {
				t.Errorf("call %d: %v, want %v", i, err, want)
			}
		}
		if do(t.Context()); calls != 2 || <-got != nil {
			t.Errorf("%d calls, one of which succeeded", calls)
		}
	})
}
