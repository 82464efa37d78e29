package backend_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

func TestACallEndsWithItsContextAndNoOtherRequestFollows(t *testing.T) {
	calls := backend.NewCalls()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(context.Background())
	abandoned := make(chan error)
	_, err := backend.Do(ctx, calls, func(ctx context.Context) (int, error) {
		cancel(why)
		<-ctx.Done()
		abandoned <- ctx.Err()
		return 1, nil
	})
	if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCallsInFlightAreBounded(t *testing.T) {
	calls := backend.NewCalls()
	ctx, cancel := context.WithCancel(context.Background())
	begun, release := make(chan struct{}), make(chan struct{})
	const limit = 256
	for range limit {
		go func() {
			_, _ = backend.Do(ctx, calls, func(context.Context) (int, error) {
				begun <- struct{}{}
				<-release
				begun <- struct{}{}
				return 0, nil
			})
		}()
	}
	for range limit {
		<-begun
	}
	cancel() // abandoned calls count
	one := func(context.Context) (int, error) { return 1, nil }
	short, end := context.WithTimeout(context.Background(), time.Millisecond)
	defer end()
	if _, err := backend.Do(short, calls, one); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "256") {
		t.Error(err)
	}
	close(release)
	for range limit {
		<-begun
	}
	if !calls.Close() || calls.Close() {
		t.Error("the first Close is the one that says so")
	}
	if _, err := backend.Do(context.Background(), calls, one); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}
