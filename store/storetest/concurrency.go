package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/store"
)

// increment adds one to a number under key by compare-and-swap, and returns the
// revision that did so. The store is in good order, so there is no third
// outcome to be expected.
func increment(s store.Store, key string) (store.Revision, error) {
	ctx := context.Background()
	for {
		e, err := s.Get(ctx, key)
		n := 0
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return 0, err
		default:
			if n, err = strconv.Atoi(string(e.Value)); err != nil {
				return 0, err
			}
		}
		written, err := s.CompareAndSwap(ctx, key, e.Revision, []byte(strconv.Itoa(n+1)))
		if !errors.Is(err, store.ErrConflict) {
			return written.Revision, err
		}
	}
}

// count lets several goroutines, each with its handle, increment one key, and
// expects every increment to be there.
func count(t *testing.T, handles []store.Store) {
	t.Helper()
	const each = 50
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		seen  = map[store.Revision]bool{}
	)
	for _, s := range handles {
		group.Go(func() {
			for range each {
				revision, err := increment(s, "counter")
				if err != nil {
					t.Errorf("increment: %v", err)
					return
				}
				mu.Lock()
				if seen[revision] {
					t.Errorf("revision %d was given twice", revision)
				}
				seen[revision] = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	e, err := handles[0].Get(context.Background(), "counter")
	if want := strconv.Itoa(each * len(handles)); err != nil || string(e.Value) != want {
		t.Errorf("counted to %q, %v; want %s", e.Value, err, want)
	}
	if !seen[e.Revision] {
		t.Errorf("the last revision, %d, was given to nobody", e.Revision)
	}
}

func counter(t *testing.T, _ Factory, s store.Store) {
	count(t, []store.Store{s, s, s, s, s, s, s, s})
}

func countersByHandle(t *testing.T, f Factory, s store.Store) {
	handles := []store.Store{s}
	for range 3 {
		h := f.Another(t, s)
		t.Cleanup(func() { mustClose(t, h) })
		handles = append(handles, h, h)
	}
	count(t, handles)
}

func creators(t *testing.T, _ Factory, s store.Store) {
	ctx := context.Background()
	for round := range 20 {
		key := fmt.Sprintf("round %d", round)
		var (
			group    sync.WaitGroup
			wins     atomic.Int64
			winner   atomic.Int64
			revision atomic.Int64
		)
		for i := range 8 {
			group.Go(func() {
				e, err := s.CompareAndSwap(ctx, key, 0, []byte(strconv.Itoa(i)))
				switch {
				case err == nil:
					wins.Add(1)
					winner.Store(int64(i))
					revision.Store(int64(e.Revision))
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("create %q: %v", key, err)
				}
			})
		}
		group.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d of 8 creators won %q", wins.Load(), key)
		}
		holds(t, s, key, strconv.FormatInt(winner.Load(), 10), store.Revision(revision.Load()))
	}
}

// readers reads, by key and by listing, while another counts up: what was
// acknowledged before a read began must be in it, and so must what an earlier
// read saw.
func readers(t *testing.T, _ Factory, s store.Store) {
	ctx := context.Background()
	const last = 200
	var (
		group        sync.WaitGroup
		acknowledged atomic.Int64
	)
	revision := put(t, s, "counter", 0, "0")
	group.Go(func() {
		defer acknowledged.Store(last) // lets the readers end, whatever happens
		for i := 1; i <= last; i++ {
			written, err := s.CompareAndSwap(ctx, "counter", revision, []byte(strconv.Itoa(i)))
			if err != nil {
				t.Errorf("write %d: %v", i, err)
				return
			}
			revision = written.Revision
			acknowledged.Store(int64(i))
		}
	})
	read := map[string]func() (store.Entry, error){
		"get": func() (store.Entry, error) { return s.Get(ctx, "counter") },
		"list": func() (store.Entry, error) {
			list, err := s.List(ctx, "count")
			if err == nil && len(list) != 1 {
				err = fmt.Errorf("%d entries", len(list))
			}
			if err != nil {
				return store.Entry{}, err
			}
			return list[0], nil
		},
	}
	for op, read := range read {
		group.Go(func() {
			for least := int64(0); least < last; {
				runtime.Gosched() // with one processor, a store in memory would keep it
				least = max(least, acknowledged.Load())
				e, err := read()
				if err != nil {
					t.Errorf("%s: %v", op, err)
					return
				}
				n, err := strconv.ParseInt(string(e.Value), 10, 64)
				if err != nil || n < least {
					t.Errorf("%s: %q, %v, after %d", op, e.Value, err, least)
					return
				}
				least = n
			}
		})
	}
	group.Wait()
}

func visible(t *testing.T, f Factory, a store.Store) {
	b := f.Another(t, a)
	t.Cleanup(func() { mustClose(t, b) })
	var revision store.Revision
	for i := range 50 {
		const value = "value of k"
		old := revision
		revision = put(t, a, "k", old, value)
		holds(t, b, "k", value, revision)
		if got := listed(t, b, "k"); len(got) != 1 {
			t.Errorf("write %d: the other handle lists %q", i, got)
		}
		if old != 0 {
			conflict(t, b, "k", old)
		}
		a, b = b, a
	}
}

// lives writes through two handles in turn. Whether the store has names for its
// lives is its own business; that both give the same is not.
func lives(t *testing.T, f Factory, s store.Store) {
	other := f.Another(t, s)
	t.Cleanup(func() { mustClose(t, other) })
	oneLife(t, s, other)
}

func livesAfter(t *testing.T, f Factory, s store.Store) {
	other := f.Another(t, s)
	t.Cleanup(func() { mustClose(t, other) })
	put(t, s, "before", 0, "")
	put(t, other, "before it as well", 0, "")
	f.Restart(t, s)
	for i, h := range []store.Store{s, other} {
		until(t, "a write after the restart", func() bool {
			_, err := h.CompareAndSwap(context.Background(), fmt.Sprint("after/", i), 0, nil)
			return err == nil || errors.Is(err, store.ErrConflict) // with one that was left open
		})
	}
	oneLife(t, s, other)
}

func oneLife(t *testing.T, handles ...store.Store) {
	t.Helper()
	seen := map[string]int{}
	const each = 4 // so that a handle with several connections uses more than one
	var mu sync.Mutex
	for round := range 2 {
		var group sync.WaitGroup
		for i := range each * len(handles) {
			group.Go(func() {
				e, err := handles[i%len(handles)].CompareAndSwap(context.Background(), fmt.Sprint("life/", round, "/", i), 0, nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[e.Life]++
			})
		}
		group.Wait()
	}
	if len(seen) != 1 {
		t.Errorf("writes confirmed by one store name the lives %v", seen)
	}
}

func recreated(t *testing.T, f Factory, s store.Store) {
	seen := map[store.Revision]bool{}
	for range 20 {
		var revision store.Revision
		for range 3 {
			revision = put(t, s, "k", revision, "the same value")
			if seen[revision] {
				t.Fatalf("revision %d came back", revision)
			}
			for old := range seen {
				conflict(t, s, "k", old)
			}
			seen[revision] = true
		}
		f.Delete(t, s, "k")
		missing(t, s, "k")
		conflict(t, s, "k", revision) // gone is not what it was
		missing(t, s, "k")
	}
}
