package sequence_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// silent is a store that does not answer until the test lets it.
type silent struct {
	*memstore.Store
	speak chan struct{}
}

func (s silent) Get(ctx context.Context, key string) (store.Entry, error) {
	select {
	case <-s.speak:
		return s.Store.Get(ctx, key)
	case <-ctx.Done():
		return store.Entry{}, context.Cause(ctx)
	}
}

func TestACallThatHasLeftTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := silent{memstore.New(nil), make(chan struct{})}
		txn := open(t, s, sequence.Config{})
		for range 70 { // within one time-out of the store
			for range 1000 {
				go func() {
					ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
					defer cancel()
					if _, err := txn.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}()
			}
			time.Sleep(12 * time.Millisecond)
			synctest.Wait()
			if waiting := txn.State().Waiting; waiting != 0 {
				t.Errorf("%d calls wait, and all have left", waiting)
				break
			}
		}
		go func() {
			time.Sleep(time.Second)
			close(s.speak)
		}()
		want(t, txn, 1)
	})
}

// Some leave from among those that stay: these keep their order and the room that is theirs.
func TestACallKeepsItsPlaceAsOthersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := silent{memstore.New(nil), make(chan struct{})}
		txn := open(t, s, sequence.Config{})
		leaving, leave := context.WithCancel(background)
		var all sync.WaitGroup
		first := make(chan struct{})
		all.Go(func() { // the addition under way is for this one
			close(first)
			want(t, txn, 1)
		})
		<-first
		synctest.Wait()
		const some = 600
		for i := range some {
			all.Go(func() {
				if i%3 > 0 {
					if _, err := txn.Next(leaving); !errors.Is(err, context.Canceled) {
						t.Errorf("who left got %v", err)
					}
					return
				}
				id, err := txn.Next(background)
				if err != nil || int(id) != 2+i/3 {
					t.Errorf("call %d of those that stay got %d, %v", i/3, id, err)
				}
			})
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		if waiting := txn.State().Waiting; waiting != some/3 {
			t.Errorf("%d calls wait, want %d", waiting, some/3)
		}
		close(s.speak)
		all.Wait()
	})
}
