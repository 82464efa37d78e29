// Package storetest has [Run], the conformance suite that every backend runs against the real server,
// and [Faulty], a store that loses answers, for tests of code that uses a store.
//
// It is for tests alone. The suite cannot show what a store keeps in a loss of power unless
// [Factory.Restart] plays one, nor how replicas behave: test those with the real setup. Nor does it show that
//   - the client never repeats a write by itself, nor sends it to a second server after the first failed;
//   - a write is confirmed only by what the store is set to survive, such as all its replicas;
//   - reads come from where writes go, and not from a replica or a cache;
//   - connections follow a name that leads to another server, and end after a few seconds if the former one still answers;
//   - connecting, logging in and each call end soon, whatever the network does, and answers are bounded;
//   - calls of leases ([store.IsUrgent]) do not wait for a connection behind others;
//   - errors contain no secret, and name the server and the way out.
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
	// Open returns a new and empty store, which the suite closes. Only Open is required; for each
	// missing function the suite skips the claims that need it.
	Open func(t *testing.T) store.Store

	// Another returns a second handle on the data of s, from Open, through its own connection, as
	// another process would have. The suite closes it.
	Another func(t *testing.T, s store.Store) store.Store

	// Delete removes an existing key from s, as an operator would.
	Delete func(t *testing.T, s store.Store, key string)

	// Restart ends the server of s like a power failure, and starts it again with the data it kept.
	Restart func(t *testing.T, s store.Store)

	// Pause makes the server of s accept connections without answering until resume.
	Pause func(t *testing.T, s store.Store) (resume func())
}

// Run tests that stores made by f keep all promises of [store.Store], each claim in a subtest on its
// own store, one after another. It writes a few thousand keys.
func Run(t *testing.T, f Factory) {
	claim := func(name string, testable bool, test func(*testing.T, Factory, store.Store)) {
		if !testable {
			return
		}
		t.Run(name, func(t *testing.T) {
			s := f.Open(t)
			// A second Close, for claims about closing.
			t.Cleanup(func() { mustClose(t, s) })
			test(t, f, s)
		})
	}
	several, restarts := f.Another != nil, f.Restart != nil
	claim("an absent key is not found", true, absent)
	claim("old 0 creates and never replaces", true, create)
	claim("a write needs the present revision and draws a new one", true, swap)
	claim("values come back byte for byte", true, values)
	claim("a value belongs to whoever holds it", true, ownership)
	claim("keys are distinguished byte for byte", true, keys)
	claim("a listing has what begins with the prefix, sorted by bytes", true, listing)
	claim("a listing of thousands is whole", true, thousands)
	claim("what is out of bounds is refused, what is just within is not", true, bounds)
	claim("a call whose context has ended says so", true, ended)
	claim("a closed store is unavailable, and may be closed again", true, closed)
	claim("calls in flight end when the store is closed", true, closing)
	claim("a clock does not go back", true, clock)
	claim("concurrent writers lose no write", true, counter)
	claim("one of many creators wins", true, creators)
	claim("readers never see a write undone", true, readers)
	claim("several handles lose no write", several, countersByHandle)
	claim("a write is seen by other handles at once", several, visible)
	claim("only a loss begins a life", true, oneLifeOnly)
	claim("all handles name one life", several, lives)
	claim("all handles name one life after a restart", several && restarts, livesAfter)
	claim("a deleted key's revisions never come back", f.Delete != nil, recreated)
	claim("what was acknowledged survives a restart", restarts, restarted)
	claim("a call to a silent server ends with its context", f.Pause != nil, paused)
}

func mustClose(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// put writes and expects the write to be applied.
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

// conflict writes and expects a conflict.
func conflict(t *testing.T, s store.Store, key string, old store.Revision) {
	t.Helper()
	_, err := s.CompareAndSwap(context.Background(), key, old, []byte("conflicting"))
	isCallError(t, err)
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
	e, err := s.Get(context.Background(), key)
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get %q: %s, %v; want ErrNotFound", key, show(e), err)
	}
	isCallError(t, err)
}

// isCallError expects an error that says in fields where it came from.
func isCallError(t *testing.T, err error) {
	t.Helper()
	var call *store.CallError
	if err != nil && (!errors.As(err, &call) || call.Store == "" || call.Op == "" || call.Err == nil) {
		t.Errorf("%v is a %T, want a *store.CallError with all its fields", err, err)
	}
}

func show(e store.Entry) string {
	return fmt.Sprintf("%q holds %.40q (%d bytes) of revision %d and life %q", e.Key, e.Value, len(e.Value), e.Revision, e.Life)
}

// A history is the revisions of a key so far.
type history map[store.Revision]bool

// write writes the same value again, and expects a revision that was not used before.
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
	for _, held := range [][]byte{value, written.Value, e.Value, list[0].Value} {
		copy(held, "XXXXXXXXXX")
		holds(t, s, "k", "value of k", written.Revision)
		listed(t, s, "k")
	}
	value = []byte("value of k")
	written, err = s.CompareAndSwap(ctx, "k", written.Revision, value)
	if copy(value, "XXXXXXXXXX"); err != nil || string(written.Value) != "value of k" {
		t.Errorf("the answer changes with the value that was given: %s, %v", show(written), err)
	}
}

// listed returns the keys of a listing, and checks that each entry is complete.
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
