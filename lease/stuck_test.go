package lease

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A stuck store does not return from one read, whatever its context does.
type stuck struct {
	store.Store
	next    atomic.Bool
	returns chan struct{}
}

func (*stuck) Traits() store.Traits { return store.Traits{} }

func (s *stuck) Get(ctx context.Context, key string) (store.Entry, error) {
	if s.next.Swap(false) {
		<-s.returns
	}
	return s.Store.Get(ctx, key)
}

// A store, or whatever else a program has put into the way of looks, may return when it likes, or never.
func TestALookThatDoesNotReturnHoldsUpNeitherCheckNorClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		s := &stuck{Store: memstore.New(nil), returns: make(chan struct{})}
		defer close(s.returns)
		var log strings.Builder
		l := must(Open(t.Context(), Config{Store: s, Window: time.Minute, Log: logTo(&log)}))
		s.next.Store(true)
		time.Sleep(10 * time.Second) // of the bubble
		if err := l.Check(); err != nil {
			t.Errorf("calls wait for the look: %v", err)
		}
		time.Sleep(80 * time.Second)
		if err := l.Check(); !errors.Is(err, firn.ErrFence) {
			t.Errorf("after the fence: %v", err)
		}
		limits, errs := []time.Duration{time.Second, 100 * time.Millisecond}, make(chan error, 2)
		for _, limit := range limits {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			go func() { errs <- l.Close(ctx) }()
			synctest.Wait()
		}
		if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("while it is closed: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for range limits {
			select {
			case err := <-errs:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			default:
				t.Error("Close waits beyond its context")
			}
		}
		if !strings.Contains(log.String(), "could not give a worker back") {
			t.Errorf("nothing says that the worker stays unused: %s", log.String())
		}
	})
}

// A deafSource does not return from a look, whatever its context does.
type deafSource struct {
	Source
	looks, returns chan struct{}
	released       *atomic.Int64
}

func (d deafSource) Look(context.Context, firn.Grant) error {
	close(d.looks)
	<-d.returns
	return nil
}

func (d deafSource) Release(ctx context.Context, held firn.Grant, last firn.Tick) error {
	d.released.Add(1)
	return d.Source.Release(ctx, held, last)
}

// Close waits somewhat longer for what a source without a store has to say, but it releases nothing beside a look.
func TestCloseReleasesNothingBesideALookThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		source := deafSource{Fixed(1), make(chan struct{}), make(chan struct{}), new(atomic.Int64)}
		l := must(Keep(t.Context(), source, Config{}))
		<-source.looks
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		before := time.Now()
		err := l.Close(ended)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for the look") || source.released.Load() != 0 || time.Since(before) > maxPatience {
			t.Errorf("%v after %v, %d releases", err, time.Since(before), source.released.Load())
		}
		close(source.returns)
		if err := l.Close(t.Context()); err != nil || source.released.Load() != 1 {
			t.Errorf("%v, %d releases", err, source.released.Load())
		}
	})
}

// Ids end when Close begins, not when what it waits for has ended.
func TestCloseStopsIDsBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		s := &stuck{Store: memstore.New(nil), returns: make(chan struct{})}
		defer close(s.returns)
		l := must(Open(t.Context(), Config{Store: s}))
		s.next.Store(true)
		time.Sleep(4 * time.Second)
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cause, closed := errors.New("no patience"), make(chan error, 1)
		go func() { closed <- l.Close(ctx) }()
		synctest.Wait()
		if id, err := l.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("%d, %v", id, err)
		}
		cancel(cause)
		if err := <-closed; !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for the look") {
			t.Error(err)
		}
	})
}

func TestCheckFailsOnceTheFenceHasPassedOrIsUsedUp(t *testing.T) {
	w := newWorld(t)
	l := w.watched(w.shared, func(c *Config) { c.Generator.Clock = firn.ClockWall })
	w.time.Pass(l.State().Until.Sub(w.time.Wall()) - time.Millisecond) // the last tick
	if err := l.Check(); err != nil {
		t.Errorf("at the fence: %v", err)
	}
	w.time.Pass(time.Millisecond)
	if err := l.Check(); !errors.Is(err, firn.ErrFence) {
		t.Errorf("after it: %v", err)
	}
	ahead := w.start(func(c *Config) {
		c.Generator.Layout, c.Generator.Ahead, c.Pool = layout("41/0/1/0"), 9*time.Second, "ahead"
	})
	w.time.Pass(ahead.State().Until.Sub(w.time.Wall()) - 5*time.Second)
	if err := w.take(ahead, 20_000); !errors.Is(err, firn.ErrFence) || !errors.Is(ahead.Check(), firn.ErrFence) {
		t.Errorf("its ids are used up: %v, %v", err, ahead.Check())
	}
}

// The generator reports each switch to the lease while it holds its lock. A reader of the state that held the lock of the
// lease, and waited for that of the generator, would stop both for ever.
func TestWhoReadsTheStateBesideSwitchesIsNotStuck(t *testing.T) {
	l, clock := switching(t, &leaver{give: []int64{1}})
	after, through := l.grant.After, l.grant.Through
	clock.Pass(10 * time.Minute) // past the fence, which Check compares, since the generator has a tick less
	l.settled = runtime.Gosched  // which makes it likely that they meet
	var callers sync.WaitGroup
	for worker := range int64(4) {
		callers.Go(func() {
			for range 5000 {
				if err := l.gen.Replace(firn.Grant{Worker: worker, After: after, Through: through - 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	switched := make(chan struct{})
	go func() { defer close(switched); callers.Wait() }()
	for ended := false; !ended; {
		select {
		case <-switched:
			ended = true
		default:
		}
		if s := l.State(); s.Worker < 0 || s.Worker > 3 {
			t.Errorf("%+v", s)
		}
		if err := l.Check(); !errors.Is(err, firn.ErrFence) {
			t.Error(err)
		}
	}
}

// A shaky clock panics when it is read.
type shaky struct{ firn.TimeSource }

func (shaky) Monotonic() time.Duration { panic("shaky") }

// Programs recover from panics of a handler, and go on. A call that switches workers records its failure.
func TestAPanicOfTheClockLocksNoLease(t *testing.T) {
	l := newWorld(t).start()
	l.cfg.Generator.Time = shaky{l.cfg.Generator.Time}
	func() {
		defer func() {
			if why := recover(); why != "shaky" {
				t.Error(why)
			}
		}()
		l.failed("switch worker", 1, errors.New("away"))
	}()
	if !l.mu.TryLock() {
		t.Fatal("it is locked")
	}
	l.mu.Unlock()
}
