package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// trickyKeys are keys that some engine mistakes for another key, for a pattern or for something else.
var trickyKeys = []string{
	"a", "A", "ab", "aB", "AB", "abc", "b", "a/", "a/b", "a/b/c", "a0", "a1", "a10", "a2",
	"%", "a%", "a%b", "_", "a_", "a_b", "*", "a*", "?", "[a]", "{a}", "\\", "a\\", "a\\%",
	"'", "a'b", `"`, "`", ";", "--", "#", "$1", "?1", ":k", "@k", "~", "!", "a.b", "a:b", "a|b", "a,b", "a=b", "a&b",
	"0", "00", "1", "01", "1.0", "NULL", "..", ".", "/", "//", "a//b",
	"a b", " ", " a", "a ", // the space is printable
	"é", "e\u0301", "É", "ß", "ss", "ſ", "ı", "i", "I", "İ", "ﬁ", "雪", "a雪", "😀", "a😀", "\U0002FA1D",
}

func keys(t *testing.T, _ Factory, s store.Store) {
	revisions := map[string]store.Revision{}
	for _, key := range trickyKeys {
		missing(t, s, key)
		revisions[key] = put(t, s, key, 0, "value of "+key)
	}
	for _, key := range trickyKeys {
		holds(t, s, key, "value of "+key, revisions[key])
	}
}

func listing(t *testing.T, _ Factory, s store.Store) {
	for _, key := range trickyKeys {
		put(t, s, key, 0, "value of "+key)
	}
	for _, prefix := range append([]string{"", "zzz", "a%%", "a__", "\U0010FFFD"}, trickyKeys...) {
		var want []string
		for _, key := range slices.Sorted(slices.Values(trickyKeys)) {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		if got := listed(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("list %q: %q, want %q", prefix, got, want)
		}
	}
}

func thousands(t *testing.T, _ Factory, s store.Store) {
	const n, writers = 3000, 4
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("pool/%d", i)) // not in the order of their numbers
	}
	together(writers, func(w int) {
		for i := w; i < n; i += writers {
			if _, err := s.CompareAndSwap(context.Background(), want[i], 0, []byte("value of "+want[i])); err != nil {
				t.Errorf("create %q: %v", want[i], err)
				return
			}
		}
	})
	put(t, s, "pool", 0, "value of pool")
	put(t, s, "pool0", 0, "value of pool0")
	if got := listed(t, s, "pool/"); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%d of %d keys are listed, or they are not sorted", len(got), n)
	}
	if got := len(listed(t, s, "")); got != n+2 {
		t.Errorf("%d keys are listed, want all %d", got, n+2)
	}
}

func bounds(t *testing.T, _ Factory, s store.Store) {
	ctx := context.Background()
	for _, key := range []string{
		"", strings.Repeat("k", store.MaxKeyBytes+1), strings.Repeat("é", store.MaxKeyBytes/2) + "k",
		"a\x00", "a\nb", "\t", "a\x7f", "\xff", "a\xc3", "a\u200b", "\u2028", "\ufeff",
	} {
		_, getErr := s.Get(ctx, key)
		_, err := s.CompareAndSwap(ctx, key, 0, nil)
		isCallError(t, getErr)
		isCallError(t, err)
		if !errors.Is(err, store.ErrRefused) || !errors.Is(getErr, store.ErrRefused) {
			t.Errorf("key %.20q of %d bytes: written %v, read %v, want both refused", key, len(key), err, getErr)
		}
	}
	if _, err := s.CompareAndSwap(ctx, "k", 0, make([]byte, store.MaxValueBytes+1)); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a value of %d bytes: %v, want it refused", store.MaxValueBytes+1, err)
	}
	if list, err := s.List(ctx, ""); err != nil || len(list) != 0 {
		t.Fatalf("after all that was refused: %d keys, %v", len(list), err)
	}
	value := strings.Repeat("v", store.MaxValueBytes)
	for _, key := range []string{strings.Repeat("k", store.MaxKeyBytes), strings.Repeat("é", store.MaxKeyBytes/2)} {
		holds(t, s, key, value, put(t, s, key, 0, value))
	}
	// Two keys that differ only in their last byte.
	near := strings.Repeat("k", store.MaxKeyBytes-1) + "l"
	missing(t, s, near)
	put(t, s, near, 0, "near")
}

// calls are one call of each kind, on an existing key at a revision.
func calls(s store.Store, key string, revision store.Revision) map[Op]func(context.Context) error {
	return map[Op]func(context.Context) error{
		OpGet:  func(ctx context.Context) error { _, err := s.Get(ctx, key); return err },
		OpList: func(ctx context.Context) error { _, err := s.List(ctx, ""); return err },
		OpCompareAndSwap: func(ctx context.Context) error {
			_, err := s.CompareAndSwap(ctx, key, revision, []byte("after"))
			return err
		},
	}
}

func ended(t *testing.T, _ Factory, s store.Store) {
	why := errors.New("the reason given")
	canceled, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	late, cancelLate := context.WithTimeout(context.Background(), -1)
	defer cancelLate()
	for i, test := range []struct {
		ctx       context.Context
		is, cause error
	}{{canceled, context.Canceled, why}, {late, context.DeadlineExceeded, context.DeadlineExceeded}} {
		key := fmt.Sprint("k", i)
		revision := put(t, s, key, 0, "before")
		for op, call := range calls(s, key, revision) {
			err := call(test.ctx)
			if !errors.Is(err, test.is) || !errors.Is(err, test.cause) || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%v: %v, want an error that is both %q and %q, and says nothing of the store", op, err, test.is, test.cause)
			}
			holds(t, s, key, "before", revision)
		}
	}
}

func closed(t *testing.T, _ Factory, s store.Store) {
	calls := calls(s, "k", put(t, s, "k", 0, "value"))
	mustClose(t, s)
	for op, call := range calls {
		err := call(context.Background())
		isCallError(t, err)
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) || store.Unapplied(err) {
			t.Errorf("%v: %v, want ErrUnavailable", op, err)
		}
	}
	if _, err := s.CompareAndSwap(context.Background(), "new", 0, nil); !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) {
		t.Errorf("create: %v, want ErrUnavailable", err)
	}
}

// closing closes a store under its writers, each alone on its key.
func closing(t *testing.T, f Factory, s store.Store) {
	const writers = 4
	var other store.Store
	if f.Another != nil {
		other = another(t, f, s)
	}
	var group sync.WaitGroup
	var acknowledged [writers]atomic.Int64
	for w := range writers {
		group.Go(func() {
			key := fmt.Sprint("closing/", w)
			for {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				_, _, err := step(ctx, s, key)
				cancel()
				if err == nil {
					acknowledged[w].Add(1)
					continue
				}
				isCallError(t, err)
				if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
				return
			}
		})
	}
	for w := range writers {
		until(t, "a write", func() bool { return acknowledged[w].Load() > 0 })
	}
	mustClose(t, s)
	group.Wait()
	for w := 0; w < writers && other != nil; w++ {
		e, err := other.Get(context.Background(), fmt.Sprint("closing/", w))
		if n, _ := strconv.ParseInt(string(e.Value), 10, 64); err != nil || n < acknowledged[w].Load() || n > acknowledged[w].Load()+1 {
			t.Errorf("%s, %v, after %d writes were acknowledged and at most one was cut off", show(e), err, acknowledged[w].Load())
		}
	}
}

func clock(t *testing.T, _ Factory, s store.Store) {
	c := s.Traits().Clock
	if c == nil {
		return // it has none
	}
	var last time.Time
	for range 100 {
		now, err := c.Now(context.Background())
		if err != nil || now.Before(last) {
			t.Fatalf("%v after %v, %v", now, last, err)
		}
		last = now
	}
}
