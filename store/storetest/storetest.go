// Package storetest says whether a [store.Store] keeps its contract, and makes
// one that fails on purpose.
//
// [Run] is the conformance suite: every backend runs it, against the real
// server. [Faulty] wraps a store and loses answers, for the tests of whatever
// stands on one.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

// A Factory makes the stores to be tested.
type Factory struct {
	// Open returns a store with nothing in it, each time another. The suite
	// closes it. Required.
	Open func(t *testing.T) store.Store

	// Another returns one more handle on what s, from Open, holds, through a
	// connection of its own, as another process would have. The suite closes it.
	// Nil leaves out what is claimed of several handles.
	Another func(t *testing.T, s store.Store) store.Store

	// Delete removes a key that exists from s, as an operator would. Nil leaves
	// out what is claimed of keys deleted and made again.
	Delete func(t *testing.T, s store.Store, key string)

	// Restart ends the server that s speaks to as a loss of power would, and
	// starts it again with the data that it kept. Nil leaves out what is claimed
	// of that.
	Restart func(t *testing.T, s store.Store)

	// Pause has the server that s speaks to accept connections and answer
	// nothing, until resume is called. Nil leaves out what is claimed of that.
	Pause func(t *testing.T, s store.Store) (resume func())
}

// Run tests stores made by f for all that [store.Store] promises, each claim in
// a subtest on a store of its own. It writes a few thousand keys; none of its
// tests runs in parallel with another.
func Run(t *testing.T, f Factory) {
	for _, c := range claims {
		if c.needs != nil && !c.needs(f) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := f.Open(t)
			// Closed for a second time where the claim is about closing.
			t.Cleanup(func() { mustClose(t, s) })
			c.test(t, f, s)
		})
	}
}

type claim struct {
	name  string
	needs func(Factory) bool // nil: nothing
	test  func(t *testing.T, f Factory, s store.Store)
}

var claims = []claim{
	{"an absent key is not found", nil, absent},
	{"old 0 creates and never replaces", nil, create},
	{"a write needs the present revision and draws a new one", nil, swap},
	{"values come back byte for byte", nil, values},
	{"a value belongs to whoever holds it", nil, ownership},
	{"keys are told apart byte for byte", nil, keys},
	{"a listing has what begins with the prefix, sorted by bytes", nil, listing},
	{"a listing of thousands is whole", nil, thousands},
	{"what is out of bounds is refused, what is just within is not", nil, bounds},
	{"a call whose context has ended says so", nil, ended},
	{"a closed store is unavailable, and may be closed again", nil, closed},
	{"a clock does not go back", nil, clock},
	{"concurrent writers lose no write", nil, counter},
	{"one of many creators wins", nil, creators},
	{"readers never see a write undone", nil, readers},
	{"several handles lose no write", several, countersByHandle},
	{"a write is seen by other handles at once", several, visible},
	{"all handles name one life", several, lives},
	{"all handles name one life after a restart", func(f Factory) bool { return several(f) && restarts(f) }, livesAfter},
	{"a deleted key's revisions never come back", deletes, recreated},
	{"what was acknowledged survives a restart", restarts, restarted},
	{"a silent server holds nobody beyond the context", pauses, paused},
}

func several(f Factory) bool  { return f.Another != nil }
func deletes(f Factory) bool  { return f.Delete != nil }
func restarts(f Factory) bool { return f.Restart != nil }
func pauses(f Factory) bool   { return f.Pause != nil }

func mustClose(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// put writes and expects it to be applied.
func put(t *testing.T, s store.Store, key string, old store.Revision, value string) store.Revision {
	t.Helper()
	e, err := s.CompareAndSwap(context.Background(), key, old, []byte(value))
	if err != nil {
		t.Fatalf("compare-and-swap %q from %d: %v", key, old, err)
	}
	if e.Revision == 0 || e.Revision == old || e.Key != key || string(e.Value) != value {
		t.Fatalf("compare-and-swap %q from %d: %+v", key, old, e)
	}
	return e.Revision
}

// conflict writes and expects it not to be applied.
func conflict(t *testing.T, s store.Store, key string, old store.Revision) {
	t.Helper()
	_, err := s.CompareAndSwap(context.Background(), key, old, []byte("conflicting"))
	if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrNotFound) {
		t.Errorf("compare-and-swap %q from %d: %v, want ErrConflict alone", key, old, err)
	}
}

// holds expects an entry. An empty value may come back as nil.
func holds(t *testing.T, s store.Store, key, value string, revision store.Revision) {
	t.Helper()
	e, err := s.Get(context.Background(), key)
	if err != nil || e.Key != key || string(e.Value) != value || e.Revision != revision || e.Life != "" {
		t.Errorf("get %q: %s, %v; want %.40q of revision %d, and no life", key, show(e), err, value, revision)
	}
}

func missing(t *testing.T, s store.Store, key string) {
	t.Helper()
	if e, err := s.Get(context.Background(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get %q: %s, %v; want ErrNotFound", key, show(e), err)
	}
}

func show(e store.Entry) string {
	return fmt.Sprintf("%q holds %.40q (%d bytes) of revision %d and life %q", e.Key, e.Value, len(e.Value), e.Revision, e.Life)
}

// A history has the revisions that a key had, none of which is the present one again.
type history map[store.Revision]bool

// write writes the same value once more.
func (h history) write(t *testing.T, s store.Store, old store.Revision) store.Revision {
	t.Helper()
	revision := put(t, s, "k", old, "the same value")
	if h[revision] {
		t.Fatalf("revision %d came back", revision)
	}
	for old := range h {
		conflict(t, s, "k", old)
	}
	h[revision] = true
	return revision
}

func absent(t *testing.T, _ Factory, s store.Store) {
	missing(t, s, "none")
	conflict(t, s, "none", 1)
	conflict(t, s, "none", -1)
	missing(t, s, "none")
	if list, err := s.List(context.Background(), ""); err != nil || len(list) != 0 {
		t.Errorf("list of an empty store: %v, %v", list, err)
	}
}

func create(t *testing.T, _ Factory, s store.Store) {
	first := put(t, s, "k", 0, "first")
	conflict(t, s, "k", 0)
	holds(t, s, "k", "first", first)
}

func swap(t *testing.T, _ Factory, s store.Store) {
	past := history{}
	var revision store.Revision
	for range 20 {
		revision = past.write(t, s, revision)
		holds(t, s, "k", "the same value", revision)
	}
	other := put(t, s, "other", 0, "other")
	conflict(t, s, "k", other) // another key's revision
	conflict(t, s, "k", revision+1)
	holds(t, s, "k", "the same value", revision)
	holds(t, s, "other", "other", other)
}

func values(t *testing.T, _ Factory, s store.Store) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, value := range []string{
		"", "\x00", "a\x00b", "\x00a", "a ", " a", "\xff\xfe not UTF-8 \xc3\x28", string(all), "'; DROP TABLE x; --",
		`{"json":"é"}`, "line\r\nline\n", "0", "NULL", "1e3", strings.Repeat("\x00\xff", store.MaxValueBytes/2),
	} {
		key := fmt.Sprintf("value %d", i)
		first := put(t, s, key, 0, value) // created with it
		holds(t, s, key, value, first)
		between := put(t, s, key, first, "between")
		holds(t, s, key, value, put(t, s, key, between, value)) // changed to it
	}
	written, err := s.CompareAndSwap(context.Background(), "nil", 0, nil)
	if err != nil {
		t.Fatalf("a nil value: %v, want it taken as an empty one", err)
	}
	holds(t, s, "nil", "", written.Revision)
	list, err := s.List(context.Background(), "nil")
	if err != nil || len(list) != 1 || len(list[0].Value) != 0 {
		t.Errorf("list of an empty value: %v, %v", list, err)
	}
}

func ownership(t *testing.T, _ Factory, s store.Store) {
	ctx := context.Background()
	value := []byte("value of k")
	written, err := s.CompareAndSwap(ctx, "k", 0, value)
	e, getErr := s.Get(ctx, "k")
	list, listErr := s.List(ctx, "k")
	if err != nil || getErr != nil || listErr != nil || len(list) != 1 {
		t.Fatal(err, getErr, listErr, list)
	}
	for _, held := range [][]byte{value, e.Value, list[0].Value} {
		copy(held, "XXXXXXXXXX")
		holds(t, s, "k", "value of k", written.Revision)
		listed(t, s, "k")
	}
}

// listed returns the keys of a listing, and checks that each entry is whole.
func listed(t *testing.T, s store.Store, prefix string) []string {
	t.Helper()
	list, err := s.List(context.Background(), prefix)
	if err != nil {
		t.Fatalf("list %q: %v", prefix, err)
	}
	var keys []string
	for _, e := range list {
		if string(e.Value) != "value of "+e.Key || e.Revision == 0 || e.Life != "" {
			t.Errorf("list %q: %s", prefix, show(e))
		}
		keys = append(keys, e.Key)
	}
	return keys
}
