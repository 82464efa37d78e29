package turns_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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

func TestAnErrorBlamesOthersOnlyWhileItsContextLasts(t *testing.T) {
	why, away, slow := errors.New("the caller has left"), errors.New("unavailable"), errors.New("slow")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := turns.Fault(ctx, away, slow); !errors.Is(err, away) || !errors.Is(err, slow) || err.Error() != "unavailable: slow" {
		t.Errorf("while the context lasts: %v", err)
	}
	cancel(why)
	for want, err := range map[string]error{
		"slow; then the call ended: context canceled: the caller has left": slow,
		"wait: context canceled": fmt.Errorf("wait: %w", context.Canceled),
	} {
		got := turns.Fault(ctx, away, err)
		if got.Error() != want || errors.Is(got, away) || !errors.Is(got, err) || !errors.Is(got, context.Canceled) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestTheErrorOfAWaitSaysWhatWaitedAndMatchesTheContextAndItsCause(t *testing.T) {
	why := errors.New("the caller has left")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	plain, cancelPlain := context.WithCancel(t.Context())
	cancelPlain()
	late, cancelLate := context.WithTimeoutCause(t.Context(), -time.Second, why)
	defer cancelLate()
	for want, c := range map[string]struct {
		ctx context.Context
		is  []error
	}{
		"p: wait: context canceled: the caller has left":          {canceled, []error{context.Canceled, why}},
		"p: wait: context canceled":                               {plain, []error{context.Canceled}},
		"p: wait: context deadline exceeded: the caller has left": {late, []error{context.DeadlineExceeded, why}},
	} {
		err := turns.Ended(c.ctx, "p: wait", turns.Wait(c.ctx, nil, make(chan struct{})))
		if err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		for _, target := range c.is {
			if !errors.Is(err, target) {
				t.Errorf("%v does not match %v", err, target)
			}
		}
	}
}
