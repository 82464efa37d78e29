package backend_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// A server may apply a write and then send what the client panics over.
func TestAClientThatPanicsLeavesTheOutcomeOpen(t *testing.T) {
	calls := backend.NewCalls("teststore", backend.NewLanes(1), func(err error) (string, error) {
		return "", store.ErrUnavailable
	})
	for _, value := range []any{"makeslice: len out of range", fmt.Errorf("%w: other", store.ErrConflict), fmt.Errorf("%w: other", store.ErrRefused)} {
		_, err := calls.Swap(context.Background(), "k", nil, func(context.Context, store.Entry) (string, error) { panic(value) })
		if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || !strings.Contains(err.Error(), "teststore") ||
			!strings.Contains(err.Error(), "malformed answer") || !strings.Contains(err.Error(), fmt.Sprint(value)) {
			t.Errorf("%v: %v", value, err)
		}
	}
	// Its place is free.
	if n, err := backend.Do(context.Background(), calls, "try", "k", func(context.Context) (int, error) { return 1, nil }); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
