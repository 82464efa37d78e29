package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// mostSilent is how many calls may fail: newcomers wait 12 s for a holder that looks every 3 s, and
// gives up each look after 2 s.
const mostSilent = 3

// FallSilent opens many connections of a store, calls silence, which must make them lose whatever is
// sent, and fails if more than three calls go unanswered before one succeeds on a new connection.
func FallSilent(t *testing.T, s store.Store, silence func()) {
	t.Helper()
	ctx := store.Urgent(context.Background())
	var busy sync.WaitGroup
	for range 32 {
		busy.Go(func() {
			for range 50 {
				if _, err := s.Get(context.Background(), "k"); !errors.Is(err, store.ErrNotFound) {
					t.Error(err)
					return
				}
			}
		})
	}
	busy.Wait()
	silence()
	for failed := 0; ; failed++ {
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := s.Get(call, "k")
		cancel()
		if errors.Is(err, store.ErrNotFound) {
			return
		}
		if failed == mostSilent {
			t.Fatalf("call %d: %v", failed+1, err)
		}
	}
}
