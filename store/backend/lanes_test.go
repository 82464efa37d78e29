package backend_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

func TestListingsWaitForEachOtherAndNothingElseWaitsForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := backend.NewCalls("teststore", backend.NewLanes(8), func(error) (string, error) { return "", store.ErrUnavailable })
		var group sync.WaitGroup
		began, goOn := make(chan string, 30), make(chan struct{})
		list := func(ctx context.Context, name, ends string) {
			group.Go(func() {
				_, err := calls.List(ctx, name, func(context.Context) ([]store.Entry, error) {
					began <- name
					<-goOn // whatever the context does
					return nil, nil
				})
				if said := fmt.Sprint(err); !strings.HasSuffix(said, ends) {
					t.Errorf("%s: %s", name, said)
				}
			})
			synctest.Wait()
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for len(began) > 0 {
				got = append(got, <-began)
			}
			if !slices.Equal(got, want) {
				t.Errorf("began: %q, want %q", got, want)
			}
		}
		abandoned, abandon := context.WithCancel(t.Context())
		list(abandoned, "abandoned", "context canceled")
		list(t.Context(), "view", "<nil>")
		list(t.Context(), "view", "<nil>")
		waiting, end := context.WithCancel(t.Context())
		list(waiting, "ended", "context canceled (it waited for other listings: 3 of a store are made at a time)")
		end()
		list(t.Context(), "view", "<nil>")
		expect("abandoned", "view", "view")
		for range 10 { // more than there are connections
			list(store.Urgent(t.Context()), "join", "<nil>")
		}
		expect("join")
		for _, ctx := range []context.Context{t.Context(), store.Urgent(t.Context())} {
			if n, err := backend.Do(ctx, calls, "look", "k", func(context.Context) (int, error) { return 7, nil }); n != 7 || err != nil {
				t.Errorf("a call that lists nothing: %d, %v", n, err)
			}
		}
		abandon()
		expect() // its request is still in flight
		for range 9 {
			goOn <- struct{}{}
			expect("join")
		}
		goOn <- struct{}{}
		expect("view")
		close(goOn)
		group.Wait()
	})
}

func TestAListingThatGetsNoConnectionGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := backend.NewLanes(1)
		calls := backend.NewCalls("teststore", l, func(error) (string, error) { return "", store.ErrUnavailable })
		leave, err := l.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nothing := func(context.Context) ([]store.Entry, error) { return nil, nil }
		if _, err := calls.List(t.Context(), "k", nothing); !errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
		leave()
		if _, err := calls.List(t.Context(), "k", nothing); err != nil {
			t.Error(err)
		}
	})
}

func TestAHolderLooksWhileListingsHang(t *testing.T) {
	for connections, begin := range map[int]int{2: 1, 4: 1, 5: 2, 0: 4} {
		synctest.Test(t, func(t *testing.T) {
			calls := backend.NewCalls("teststore", backend.NewLanes(connections), func(error) (string, error) { return "", store.ErrUnavailable })
			urgent := store.Urgent(t.Context())
			hang := make(chan struct{})
			var began atomic.Int64
			for range 10 {
				go func() {
					_, _ = calls.List(urgent, "k", func(context.Context) ([]store.Entry, error) {
						began.Add(1)
						<-hang
						return nil, nil
					})
				}()
			}
			synctest.Wait()
			if n := began.Load(); n != int64(begin) {
				t.Errorf("%d connections: %d listings at a time, want %d", connections, n, begin)
			}
			if _, err := backend.Do(urgent, calls, "look", "k", func(context.Context) (int, error) { return 0, nil }); err != nil {
				t.Errorf("%d connections: %v", connections, err)
			}
			close(hang)
		})
	}
}
