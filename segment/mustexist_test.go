package segment_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

var plainStripe = segment.Stripe{Stride: 1}

// setBack checks an error against what it should say.
func setBack(t *testing.T, what string, err error, want store.SetBackError) {
	t.Helper()
	var got *store.SetBackError
	if !errors.As(err, &got) || *got != want || !errors.Is(err, store.ErrSetBack) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%s: %v, want %+v", what, err, want)
	}
}

// nothing checks that the store has no counter.
func nothing(t *testing.T, s store.Store) {
	t.Helper()
	if c, err := segment.ReadCounter(t.Context(), s, "orders"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("somebody made the counter %+v, %v", c, err)
	}
}

func TestACounterThatMustExistIsNotMade(t *testing.T) { synctest.Test(t, isNotMade) }

func isNotMade(t *testing.T) {
	mem := memstore.New(nil)
	all, here := orders(t, segment.Config{Store: mem, MustExist: true})
	missing := store.SetBackError{Counter: "orders", Missing: true}
	_, err := here.Next(t.Context())
	setBack(t, "next", err, missing)
	_, err = here.Reserve(t.Context(), 3)
	setBack(t, "reserve", err, missing)
	for _, last := range []firn.ID{-1, 0} { // which name no id
		setBack(t, "raise", here.Raise(t.Context(), last), missing)
	}
	if err := here.Look(t.Context()); err != nil { // this process knows of no id
		t.Error(err)
	}
	nothing(t, mem)
	if _, err := segment.RaiseCounter(t.Context(), mem, "orders", 0, plainStripe); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // until it asks the store again
	if id, err := here.Next(t.Context()); id != 1 || err != nil {
		t.Error(id, err)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
	mem.Restore(nil)
	all, here = orders(t, segment.Config{Store: mem, MustExist: true})
	if err := here.Raise(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if id, err := here.Next(t.Context()); id != 2 || err != nil {
		t.Error(id, err)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestACounterThatMustExistIsNotRaisedUnasked(t *testing.T) { synctest.Test(t, isNotRaised) }

func isNotRaised(t *testing.T) {
	for _, wiped := range []bool{false, true} {
		mem, memory := memstore.New(nil), &register.Memory{}
		if _, err := segment.RaiseCounter(t.Context(), mem, "orders", 4, plainStripe); err != nil {
			t.Fatal(err)
		}
		older := mem.Snapshot()
		want := store.SetBackError{Counter: "orders", Missing: wiped, Found: 4, Known: 14}
		if wiped {
			older, want.Found = nil, 0
		}
		all, here := orders(t, segment.Config{Store: mem, MustExist: true, MinStep: 10, MaxStep: 10, Ahead: 1e-9, Chain: 1, Memory: memory})
		next := func(want firn.ID) {
			t.Helper()
			if id, err := here.Next(t.Context()); id != want || err != nil {
				t.Errorf("%d, %v, want %d", id, err, want)
			}
		}
		next(5)
		mem.Restore(older)
		for range 2 {
			setBack(t, "look", here.Look(t.Context()), want)
		}
		for id := firn.ID(6); id <= 14; id++ { // they are in memory
			next(id)
		}
		_, err := here.Next(t.Context())
		setBack(t, "next", err, want)
		setBack(t, "a raise below what is known", here.Raise(t.Context(), 13), want)
		if now := mem.Snapshot(); len(now) != len(older) {
			t.Errorf("a refusal wrote: %v", now)
		}
		if _, err := segment.RaiseCounter(t.Context(), mem, "orders", 13, plainStripe); err != nil { // by another program
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		_, err = here.Next(t.Context())
		setBack(t, "raised below what is known", err, store.SetBackError{Counter: "orders", Found: 13, Known: 14})
		if n := here.State().SetBacks; n != 1 {
			t.Errorf("%d set backs", n)
		}
		if err := here.Raise(t.Context(), 14); err != nil {
			t.Error(err)
		}
		next(15)
		if err := all.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The last id of a counter with a stride lies a stride below the next.
func TestASetBackNamesTheLastIDOfAStripe(t *testing.T) {
	stripe := segment.Stripe{Offset: 1, Stride: 4}
	mem := memstore.New(nil)
	var log bytes.Buffer
	_, n := orders(t, segment.Config{Store: mem, MustExist: true, Offset: 1, Stride: 4, MinStep: 5, MaxStep: 5, Ahead: 1e-9, Log: slog.New(slog.NewTextHandler(&log, nil))})
	raise := func(last firn.ID) {
		t.Helper()
		if _, err := segment.RaiseCounter(t.Context(), mem, "orders", last, stripe); err != nil {
			t.Fatal(err)
		}
	}
	raise(0)
	if id, err := n.Next(t.Context()); id != 1 || err != nil {
		t.Fatal(id, err)
	}
	mem.Restore(nil)
	raise(5)
	for range 2 {
		setBack(t, "look", n.Look(t.Context()), store.SetBackError{Counter: "orders", Found: 5, Known: 17})
	}
	if text := log.String(); strings.Count(text, "no range is fetched until the counter of a segment is raised") != 1 || strings.Contains(text, "may be made again") {
		t.Error(text)
	}
}

// What is in memory stays there, since it may be all that can be issued for a while.
func TestARaiseThatIsRefusedDropsNothing(t *testing.T) {
	mem := memstore.New(nil)
	if _, err := segment.RaiseCounter(t.Context(), mem, "orders", 0, plainStripe); err != nil {
		t.Fatal(err)
	}
	_, here := orders(t, segment.Config{Store: mem, MustExist: true, MinStep: 10, MaxStep: 10, Ahead: 1e-9, Chain: 1})
	if id, err := here.Next(t.Context()); id != 1 || err != nil {
		t.Fatal(id, err)
	}
	mem.Restore(nil)
	setBack(t, "too low", here.Raise(t.Context(), 5), store.SetBackError{Counter: "orders", Missing: true, Known: 10})
	if id, err := here.Next(t.Context()); id != 2 || err != nil || here.State().Left != 8 {
		t.Errorf("%d, %v, %d left", id, err, here.State().Left)
	}
	if err := here.Raise(t.Context(), 500); err != nil {
		t.Error(err)
	}
	if id, err := here.Next(t.Context()); id != 501 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
}

// slowOnce answers the first read late.
type slowOnce struct {
	store.Store
	asked atomic.Bool
}

func (s *slowOnce) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := s.Store.Get(ctx, key)
	if !s.asked.Swap(true) {
		time.Sleep(time.Second)
	}
	return e, err
}

// A fetch that has read the store before the raise fails after it. The raise has succeeded all the same.
func TestARaiseSucceedsBesideAFetchFromBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, here := orders(t, segment.Config{Store: &slowOnce{Store: memstore.New(nil)}, MustExist: true})
		early := make(chan error, 1)
		go func() {
			_, err := here.Next(t.Context())
			early <- err
		}()
		synctest.Wait()
		if err := here.Raise(t.Context(), 500); err != nil {
			t.Error(err)
		}
		setBack(t, "asked before the raise", <-early, store.SetBackError{Counter: "orders", Missing: true})
		if id, err := here.Next(t.Context()); id != 501 || err != nil {
			t.Errorf("%d, %v", id, err)
		}
		if err := all.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Others may go on with a counter that was raised too low. That is one loss, and one line in the log.
func TestOneLossIsCountedOnce(t *testing.T) {
	mem := memstore.New(nil)
	raise := func(last firn.ID) {
		t.Helper()
		if _, err := segment.RaiseCounter(t.Context(), mem, "orders", last, plainStripe); err != nil {
			t.Fatal(err)
		}
	}
	raise(100)
	_, here := orders(t, segment.Config{Store: mem, MustExist: true})
	if _, err := here.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mem.Restore(nil)
		for last := firn.ID(5); last < 10; last++ {
			raise(last)
			setBack(t, "look", here.Look(t.Context()), store.SetBackError{Counter: "orders", Found: last, Known: 1100})
		}
	}
	if n := here.State().SetBacks; n != 1 {
		t.Errorf("%d losses are counted", n)
	}
	if err := here.Raise(t.Context(), 1100); err != nil {
		t.Error(err)
	}
	mem.Restore(nil)
	if err := here.Look(t.Context()); !errors.Is(err, store.ErrSetBack) || here.State().SetBacks != 2 {
		t.Errorf("%v, %d losses are counted", err, here.State().SetBacks)
	}
}
