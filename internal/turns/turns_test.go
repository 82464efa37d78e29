package turns_test

import (
	"context"
	"errors"
	"testing"

	"github.com/firn-id/firn/internal/turns"
)

func TestWaitReturnsNilIfDoneAndContextHaveBothEnded(t *testing.T) {
	why := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	done := make(chan struct{})
	if err := turns.Wait(ctx, nil, done); !errors.Is(err, why) {
		t.Errorf("not done: %v", err)
	}
	close(done)
	for range 100 { // a select among both would choose either
		if err := turns.Wait(ctx, nil, done); err != nil {
			t.Fatalf("done: %v", err)
		}
	}
}
