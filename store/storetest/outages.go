package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

var (
	patience = 30 * time.Second       // for a store to recover by itself
	short    = 200 * time.Millisecond // for a call to a silent server
)

// until waits for a condition that only needs time.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// restarted makes writers count, each alone on its key, while the server is restarted. Afterwards
// acknowledged writes must be there; writes with an unknown outcome may be; unapplied writes must not
// be.
func restarted(t *testing.T, f Factory, s store.Store) {
	const writers, restarts, between = 4, 3, 12
	var (
		group                 sync.WaitGroup
		stop                  atomic.Bool
		acknowledged, unknown [writers]atomic.Int64
	)
	write := func(what string) {
		for w := range writers {
			before := acknowledged[w].Load()
			until(t, what, func() bool { return acknowledged[w].Load() >= before+between })
		}
	}
	for w := range writers {
		group.Go(func() {
			key := fmt.Sprint("counter/", w)
			for !stop.Load() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				_, read, err := step(ctx, s, key)
				cancel()
				switch {
				case !read:
				case err == nil:
					acknowledged[w].Add(1)
				case !store.Unapplied(err):
					unknown[w].Add(1)
				case unknown[w].Load() == 0: // otherwise a write with an unknown outcome came between
					t.Errorf("the only writer of %q: %v", key, err)
				}
			}
		})
	}
	for range restarts {
		write("writes")
		f.Restart(t, s)
	}
	write("writes after the last restart")
	stop.Store(true)
	group.Wait()
	for w := range writers {
		key := fmt.Sprint("counter/", w)
		e, err := s.Get(context.Background(), key)
		if err != nil {
			t.Errorf("get %q after restarts: %v", key, err)
			continue
		}
		n, err := strconv.ParseInt(string(e.Value), 10, 64)
		if a, u := acknowledged[w].Load(), unknown[w].Load(); err != nil || n < a || n > a+u {
			t.Errorf("%q counted to %q: %d writes were acknowledged and %d left open", key, e.Value, a, u)
		}
	}
}

// paused calls a silent server: each call ends with its context, without an answer, and the store
// recovers when the server does.
func paused(t *testing.T, f Factory, s store.Store) {
	revision := put(t, s, "k", 0, "before")
	resume := f.Pause(t, s)
	var resumed sync.Once
	defer resumed.Do(resume)
	why := errors.New("the reason given")
	for op, call := range calls(s, "k", revision) {
		for _, want := range []error{context.DeadlineExceeded, why} {
			ctx, cancel := context.WithTimeout(context.Background(), short)
			if errors.Is(want, why) {
				c, end := context.WithCancelCause(context.Background())
				time.AfterFunc(short, func() { end(why) })
				ctx = c
			}
			answer := make(chan error, 1)
			go func() { answer <- call(ctx) }()
			select {
			case err := <-answer:
				isCallError(t, err)
				if !errors.Is(err, want) || store.Unapplied(err) || errors.Is(err, store.ErrNotFound) {
					t.Errorf("%v of a silent server: %v, want %v", op, err, want)
				}
			case <-time.After(10 * short):
				t.Errorf("%v of a silent server still waits long after its context has ended", op)
			}
			cancel()
		}
	}
	resumed.Do(resume)
	until(t, "the store to be good again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _, err := step(ctx, s, "k")
		return err == nil
	})
}
