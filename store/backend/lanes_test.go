package backend_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

func TestCallsBeginInTurnUnlessTheOldestHasWaitedTooLong(t *testing.T) {
	for after, want := range map[time.Duration][]string{
		400 * time.Millisecond: {"ended look context canceled (1 calls in flight: one of them hangs, or the client needs more connections)", "old look", "new look", "old", "new"},
		600 * time.Millisecond: {"ended look context canceled (1 calls in flight: one of them hangs, or the client needs more connections)", "new look", "old look", "old", "new"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := backend.NewLanes(1)
			leave, err := l.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var order []string
			var group sync.WaitGroup
			enter := func(ctx context.Context, name string) {
				group.Go(func() {
					leave, err := l.Enter(ctx)
					if err != nil {
						name += " " + err.Error()
					} else {
						defer leave()
					}
					order = append(order, name)
				})
				synctest.Wait()
			}
			urgent, cancelAll := context.WithTimeout(store.Urgent(t.Context()), 2*time.Second)
			defer cancelAll()
			enter(urgent, "old look")
			ended, cancel := context.WithCancel(urgent)
			enter(ended, "ended look")
			enter(t.Context(), "old") // has all time
			enter(urgent, "new look")
			enter(t.Context(), "new")
			cancel()
			synctest.Wait()
			time.Sleep(after)
			leave()
			group.Wait()
			if !slices.Equal(order, want) {
				t.Errorf("after %v: %q", after, order)
			}
			if leave, err := l.Enter(t.Context()); err != nil { // no place was lost
				t.Error(err)
			} else {
				leave()
			}
		})
	}
}

// A hundred pools look every three seconds, each look has two, and connecting takes more than half of that.
// For some seconds no call succeeds. In turn, no look would ever succeed again: each waits until it has too
// little time left to connect, and gives its place to one that has waited as long.
func TestLooksRecoverAfterASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connections, login, exchange = 16, 1100 * time.Millisecond, 200 * time.Millisecond
		l := backend.NewLanes(connections)
		var mu sync.Mutex
		idle := connections
		lost := errors.New("lost")
		look := func(ctx context.Context, silent bool) error {
			ctx, cancel := context.WithTimeout(store.Urgent(ctx), 2*time.Second)
			defer cancel()
			leave, err := l.Enter(ctx)
			if err != nil {
				return err
			}
			defer leave()
			mu.Lock()
			takes := exchange
			if idle > 0 {
				idle--
			} else {
				takes += login
			}
			mu.Unlock()
			if silent {
				takes = time.Hour
			}
			select {
			case <-time.After(takes):
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", lost, ctx.Err()) // and the connection with it
			}
			mu.Lock()
			idle++
			mu.Unlock()
			return nil
		}
		begun := time.Now()
		var group sync.WaitGroup
		var failed int
		for i := range 100 {
			group.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Millisecond)
				for since := time.Duration(0); since < time.Minute; since = time.Since(begun) {
					wait := 3 * time.Second
					if err := look(t.Context(), since > 10*time.Second && since < 16*time.Second); err != nil {
						wait = 375 * time.Millisecond
						if since > 30*time.Second {
							mu.Lock()
							failed++
							mu.Unlock()
						}
					}
					time.Sleep(wait)
				}
			})
		}
		group.Wait()
		if failed > 0 {
			t.Errorf("%d looks failed more than 14 s after the silence", failed)
		}
	})
}
