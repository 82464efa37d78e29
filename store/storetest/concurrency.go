package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/store"
)

// step reads the number under key and writes the next one. Read: it got as far as the write.
func step(ctx context.Context, s store.Store, key string) (written store.Entry, read bool, err error) {
	e, err := s.Get(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Entry{}, false, err
	}
	n, _ := strconv.Atoi(string(e.Value)) // a missing key counts as 0
	written, err = s.CompareAndSwap(ctx, key, e.Revision, []byte(strconv.Itoa(n+1)))
	return written, true, err
}

// together makes n calls at once and waits for them.
func together(n int, call func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { call(i) })
	}
	group.Wait()
}

// count makes one goroutine for each handle increment one key, and expects every increment.
func count(t *testing.T, handles []store.Store) {
	t.Helper()
	const each = 50
	var seen sync.Map // revisions
	together(len(handles), func(i int) {
		for done := 0; done < each; {
			// A healthy store has no third outcome here.
			written, _, err := step(context.Background(), handles[i], "counter")
			switch {
			case errors.Is(err, store.ErrConflict):
				continue
			case err != nil:
				t.Errorf("increment: %v", err)
				return
			}
			done++
			if _, twice := seen.LoadOrStore(written.Revision, true); twice {
				t.Errorf("revision %d was given twice", written.Revision)
			}
		}
	})
	e, err := handles[0].Get(context.Background(), "counter")
	if want := strconv.Itoa(each * len(handles)); err != nil || string(e.Value) != want {
		t.Errorf("counted to %q, %v; want %s", e.Value, err, want)
	}
	if _, given := seen.Load(e.Revision); !given {
		t.Errorf("the last revision, %d, was returned to no writer", e.Revision)
	}
}

func counter(t *testing.T, _ Factory, s store.Store) {
	count(t, slices.Repeat([]store.Store{s}, 8))
}

func countersByHandle(t *testing.T, f Factory, s store.Store) {
	handles := []store.Store{s}
	for range 3 {
		h := another(t, f, s)
		handles = append(handles, h, h)
	}
	count(t, handles)
}

// another opens one more handle, closed when the test ends.
func another(t *testing.T, f Factory, s store.Store) store.Store {
	h := f.Another(t, s)
	t.Cleanup(func() { mustClose(t, h) })
	return h
}

func creators(t *testing.T, _ Factory, s store.Store) {
	for round := range 20 {
		key := fmt.Sprintf("round %d", round)
		const n = 8
		wins := make(chan store.Entry, n)
		together(n, func(i int) {
			value := []byte(strconv.Itoa(i))
			switch e, err := s.CompareAndSwap(context.Background(), key, 0, value); {
			case err == nil:
				wins <- store.Entry{Value: value, Revision: e.Revision}
			case !errors.Is(err, store.ErrConflict):
				t.Errorf("create %q: %v", key, err)
			}
		})
		if len(wins) != 1 {
			t.Fatalf("%d of %d creators won %q", len(wins), n, key)
		}
		e := <-wins
		for range 3 { // a write that lost must not arrive later either
			holds(t, s, key, string(e.Value), e.Revision)
		}
	}
}

// readers reads, by key and by listing, while another handle counts up. A read must return every write
// acknowledged before it began, and everything an earlier read returned.
func readers(t *testing.T, _ Factory, s store.Store) {
	ctx := context.Background()
	const last = 200
	var group sync.WaitGroup
	var acknowledged atomic.Int64
	revision := put(t, s, "counter", 0, "0")
	group.Go(func() {
		defer acknowledged.Store(last) // ends the readers in any case
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
	for op, read := range map[Op]func() ([]store.Entry, error){
		OpGet: func() ([]store.Entry, error) {
			e, err := s.Get(ctx, "counter")
			return []store.Entry{e}, err
		},
		OpList: func() ([]store.Entry, error) { return s.List(ctx, "count") },
	} {
		group.Go(func() {
			for least := int64(0); least < last; {
				runtime.Gosched() // on one processor, a memory store would not yield
				least = max(least, acknowledged.Load())
				list, err := read()
				if err != nil || len(list) != 1 {
					t.Errorf("%v: %v, %v", op, list, err)
					return
				}
				n, err := strconv.ParseInt(string(list[0].Value), 10, 64)
				if err != nil || n < least {
					t.Errorf("%v: %s, %v, after %d", op, show(list[0]), err, least)
					return
				}
				least = n
			}
		})
	}
	group.Wait()
}

func visible(t *testing.T, f Factory, a store.Store) {
	b := another(t, f, a)
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

// oneLifeOnly does everything but lose something, and expects the same life all the time.
func oneLifeOnly(t *testing.T, f Factory, s store.Store) {
	ctx := context.Background()
	first, last := "", store.Entry{}
	write := func(after string) {
		written, err := s.CompareAndSwap(ctx, "k", last.Revision, nil)
		if last.Revision == 0 {
			first = written.Life
		}
		if err != nil || written.Life != first {
			t.Fatalf("a write after %s: life %q, %v; it was %q", after, written.Life, err, first)
		}
		last = written
	}
	write("none")
	for range 300 {
		write("writes")
	}
	missing(t, s, "none")
	conflict(t, s, "k", 0)
	write("a conflict")
	if _, err := s.CompareAndSwap(ctx, "", 0, nil); !errors.Is(err, store.ErrRefused) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for op, call := range calls(s, "k", last.Revision) {
		if err := call(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", op, err)
		}
	}
	write("calls that were refused or had ended")
	if f.Delete != nil {
		put(t, s, "deleted", 0, "")
		f.Delete(t, s, "deleted")
		write("a key was deleted")
	}
	if f.Another != nil {
		h := f.Another(t, s)
		put(t, h, "of the other", 0, "")
		mustClose(t, h)
		write("another handle came and went")
	}
}

// lives writes through two handles: both report the same life, or both report none.
func lives(t *testing.T, f Factory, s store.Store) { oneLife(t, s, another(t, f, s)) }

func livesAfter(t *testing.T, f Factory, s store.Store) {
	other := another(t, f, s)
	put(t, s, "before", 0, "")
	put(t, other, "before it as well", 0, "")
	f.Restart(t, s)
	for i, h := range []store.Store{s, other} {
		until(t, "a write after the restart", func() bool {
			_, _, err := step(context.Background(), h, fmt.Sprint("after/", i))
			return err == nil
		})
	}
	oneLife(t, s, other)
}

func oneLife(t *testing.T, handles ...store.Store) {
	t.Helper()
	const each = 4 // so that a handle with several connections uses more than one
	seen := map[string]int{}
	var mu sync.Mutex
	for round := range 2 {
		together(each*len(handles), func(i int) {
			e, err := handles[i%len(handles)].CompareAndSwap(context.Background(), fmt.Sprint("life/", round, "/", i), 0, nil)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[e.Life]++
		})
	}
	if len(seen) != 1 {
		t.Errorf("writes confirmed by one store name the lives %v", seen)
	}
}

func recreated(t *testing.T, f Factory, s store.Store) {
	past := history{}
	for range 20 {
		var revision store.Revision
		for range 3 {
			revision = past.write(t, s, revision)
		}
		f.Delete(t, s, "k")
		missing(t, s, "k")
		conflict(t, s, "k", revision) // a deleted key is a conflict too
		missing(t, s, "k")
	}
}
