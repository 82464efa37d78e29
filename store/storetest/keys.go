package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
)

// trickyKeys are keys that some engine takes for another, for a pattern or for
// something else than a key.
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
		for _, key := range sorted(trickyKeys) {
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
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := w; i < n; i += writers {
				if _, err := s.CompareAndSwap(context.Background(), want[i], 0, []byte("value of "+want[i])); err != nil {
					t.Errorf("create %q: %v", want[i], err)
					return
				}
			}
		})
	}
	group.Wait()
	put(t, s, "pool", 0, "value of pool")
	put(t, s, "pool0", 0, "value of pool0")
	if got := listed(t, s, "pool/"); !slices.Equal(got, sorted(want)) {
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
	// Two keys that differ in their last byte only.
	near := strings.Repeat("k", store.MaxKeyBytes-1) + "l"
	missing(t, s, near)
	put(t, s, near, 0, "near")
}

func ended(t *testing.T, _ Factory, s store.Store) {
	revision := put(t, s, "k", 0, "before")
	why := errors.New("the reason given")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	late, cancelLate := context.WithTimeout(context.Background(), -1)
	defer cancelLate()
	for _, test := range []struct {
		ctx       context.Context
		is, cause error
	}{{ctx, context.Canceled, why}, {late, context.DeadlineExceeded, context.DeadlineExceeded}} {
		_, get := s.Get(test.ctx, "k")
		_, list := s.List(test.ctx, "")
		_, write := s.CompareAndSwap(test.ctx, "k", revision, []byte("after"))
		for op, err := range map[Op]error{OpGet: get, OpList: list, OpCompareAndSwap: write} {
			if !errors.Is(err, test.is) || !errors.Is(err, test.cause) {
				t.Errorf("%v: %v, want an error that is both %q and %q", op, err, test.is, test.cause)
			}
		}
		// The write is the third outcome. Find out, as callers do.
		e, err := s.Get(context.Background(), "k")
		switch {
		case err != nil:
			t.Fatal(err)
		case store.Unapplied(write) && e.Revision != revision:
			t.Errorf("a write was applied that was answered by %v", write)
		}
		revision = put(t, s, "k", e.Revision, "before")
	}
}

func closed(t *testing.T, _ Factory, s store.Store) {
	ctx := context.Background()
	revision := put(t, s, "k", 0, "value")
	mustClose(t, s)
	_, get := s.Get(ctx, "k")
	_, list := s.List(ctx, "")
	_, create := s.CompareAndSwap(ctx, "new", 0, nil)
	_, write := s.CompareAndSwap(ctx, "k", revision, nil)
	for i, err := range []error{get, list, create, write} {
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) || store.Unapplied(err) {
			t.Errorf("call %d: %v, want ErrUnavailable", i, err)
		}
	}
}

func clock(t *testing.T, _ Factory, s store.Store) {
	c, ok := s.(store.Clock)
	if !ok {
		return // it claims to have none
	}
	last, err := c.Now(context.Background())
	for range 100 {
		if err != nil {
			t.Fatal(err)
		}
		now, nowErr := c.Now(context.Background())
		if now.Before(last) {
			t.Errorf("%v after %v", now, last)
		}
		last, err = now, nowErr
	}
}
