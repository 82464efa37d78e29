//go:build !race

package sequence_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// room is how many calls may wait for an addition.
const room = 1 << 16

// (The race detector has no room for so many goroutines.)
func TestTheNumberOfWaitingCallsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := silent{memstore.New(nil), make(chan struct{})}
		txn := open(t, s, sequence.Config{})
		leaving, leave := context.WithCancel(background)
		var all sync.WaitGroup
		all.Go(func() { // is in the addition under way, and waits for no other
			if _, err := txn.Next(background); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for i := range room {
			ctx := background
			if i == room/2 {
				ctx = leaving
			}
			all.Go(func() {
				if _, err := txn.Next(ctx); err != nil && ctx == background {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		_, err := txn.Next(background)
		fails(t, "one more", err, store.ErrUnavailable, "65536 calls wait already")
		leave()
		synctest.Wait()
		all.Go(func() {
			if _, err := txn.Next(background); err != nil {
				t.Errorf("after one has left: %v", err)
			}
		})
		synctest.Wait()
		_, err = txn.Next(background)
		fails(t, "one more", err, store.ErrUnavailable, "65536 calls wait already")
		close(s.speak)
		all.Wait()
	})
}
