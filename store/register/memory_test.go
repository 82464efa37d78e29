package register_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/register"
)

func TestOneAtATimeMovesACounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m register.Memory
		k := m.Of("orders")
		if k != m.Of("orders") || k == m.Of("users") {
			t.Fatal("a name is not one counter")
		}
		enter := func(ctx context.Context) error { return k.Enter(ctx, firn.SystemTime()) }
		if err := enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		why := errors.New("no patience")
		ctx, cancel := context.WithCancelCause(t.Context())
		left, inside, most := make(chan error), 0, 0
		go func() { left <- enter(ctx) }()
		for range 3 {
			go func() {
				if err := enter(t.Context()); err != nil {
					t.Error(err)
				}
				inside++
				most = max(most, inside)
				time.Sleep(time.Second) // of the bubble: the others have had their chance
				k.Had(k.High() + 1)
				inside--
				k.Leave()
			}()
		}
		synctest.Wait()
		cancel(why)
		if err := <-left; !errors.Is(err, why) {
			t.Error(err)
		}
		k.Leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != 1 || k.High() != 3 {
			t.Errorf("%d at a time, %d", most, k.High())
		}
		if err := enter(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoEndsWaitingTakesNobodysTurn(t *testing.T) {
	for round := range 300 {
		synctest.Test(t, func(t *testing.T) {
			var m register.Memory
			k := m.Of("orders")
			enter := func(ctx context.Context) error { return k.Enter(ctx, firn.SystemTime()) }
			if err := enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // the first that waits ends as its turn comes, or before
				if enter(ctx) == nil {
					k.Leave()
				}
			}()
			synctest.Wait()
			entered := make(chan error, 1)
			go func() { entered <- enter(t.Context()) }()
			synctest.Wait()
			cancel()
			if round%2 == 0 {
				synctest.Wait()
				select {
				case <-entered:
					t.Fatal("two have entered")
				default:
				}
			}
			k.Leave()
			if err := <-entered; err != nil {
				t.Error(err)
			}
			k.Leave()
			if err := enter(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMemoryKnowsTheGreatestIDAndCountsSetBacks(t *testing.T) {
	var m register.Memory
	k := m.Of("orders")
	k.Had(10)
	k.Had(7)
	k.Lacks(3, 7)
	if k.High() != 10 {
		t.Error(k.High())
	}
	k.Lacks(8, 10)
	if k.High() != 7 {
		t.Error(k.High())
	}
	m.Of("users").Had(1)
	m.Of("bills").SetBack(1)
	if !k.SetBack(3) || k.SetBack(3) { // the same record again
		t.Error("it counts wrongly")
	}
	k.Had(5)
	if k.SetBack(3) {
		t.Error("the counter is not above what is known")
	}
	k.Had(8)
	if !k.SetBack(3) {
		t.Error("it is back at an earlier record, and not counted")
	}
	if all := m.SetBacks(); !maps.Equal(all, map[string]int64{"orders": 2, "bills": 1}) {
		t.Error(all)
	}
}
