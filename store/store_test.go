package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

func TestOnlyAConflictAndARefusalAreCertain(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("x: %w", store.ErrConflict), true},
		{fmt.Errorf("x: %w", store.ErrRefused), true},
		{store.ErrUnavailable, false},
		{store.ErrNotFound, false},
		{context.Canceled, false},
		{context.DeadlineExceeded, false},
		{errors.New("connection reset"), false},
		{nil, false},
	} {
		if got := store.Unapplied(test.err); got != test.want {
			t.Errorf("%v: %t", test.err, got)
		}
	}
}

func TestAContextErrorIsTheContextsErrorAndItsCause(t *testing.T) {
	if err := store.ContextError(context.Background()); err != nil {
		t.Error(err)
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := store.ContextError(ctx); !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithCancelCause(context.Background())
	cancel(nil)
	if err := store.ContextError(ctx); err == nil || err.Error() != "context canceled" {
		t.Errorf("without a reason: %v", err)
	}
}

// One member's error cancels a whole group of callers. That error says nothing about the calls of the
// other members.
func TestTheCauseOfACallsEndIsNotItsOutcome(t *testing.T) {
	for _, answer := range []error{store.ErrRefused, store.ErrConflict, store.ErrNotFound} {
		for _, why := range []error{
			fmt.Errorf("another call: %w", answer),
			fmt.Errorf("another call: %w: %w", context.Canceled, answer),
		} {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(why)
			err := store.ContextError(ctx)
			if !errors.Is(err, context.Canceled) || errors.Is(err, answer) || !strings.Contains(err.Error(), "another call") {
				t.Errorf("ended by %v: %v", why, err)
			}
		}
	}
}

// pretending is a cause of the caller's with the methods that a store's own may have.
type pretending struct{ error }

func (pretending) Own() bool                { return true }
func (pretending) EndedByStore() pretending { return pretending{} }
func (p pretending) Unwrap() error          { return p.error }

// Only package backend has causes that say that the store has ended the call.
func TestACauseOfTheCallersIsNeverAStoresOwn(t *testing.T) {
	for _, answer := range []error{errors.New("why"), store.ErrConflict, store.ErrRefused, store.ErrNotFound} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(pretending{answer})
		if err := store.ContextError(ctx); !errors.Is(err, context.Canceled) || store.Unapplied(err) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("ended by %v: %v", answer, err)
		}
	}
}

func TestKeysArePrintableAndBounded(t *testing.T) {
	for key, ok := range map[string]bool{
		"pool/é 雪": true, " ": true, strings.Repeat("k", store.MaxKeyBytes): true,
		"": false, strings.Repeat("k", store.MaxKeyBytes+1): false, "\xff": false, "a\x00": false, "a\n": false, "\u200b": false,
	} {
		if err := store.CheckKey(key); (err == nil) != ok || !ok && !errors.Is(err, store.ErrRefused) {
			t.Errorf("%.20q of %d bytes: %v", key, len(key), err)
		}
	}
	if err := store.CheckValue("k", make([]byte, store.MaxValueBytes)); err != nil {
		t.Error(err)
	}
	if err := store.CheckValue("k", make([]byte, store.MaxValueBytes+1)); !errors.Is(err, store.ErrRefused) {
		t.Error(err)
	}
}
