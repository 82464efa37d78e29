// Package memstore is a [store.Store] in memory: for tests, for demonstrations
// and for several generators in one process. What it holds ends with the
// process.
package memstore

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/firn-id/firn/store"
)

// Store is a map under a mutex. Make one with [New].
type Store struct {
	mu      sync.Mutex
	entries map[string]store.Entry
	random  func() int64
	life    string
	closed  bool
}

// New returns an empty store. Random draws revisions, called under a lock; nil
// stands for math/rand/v2. A test that is replayed from a seed gives its own.
func New(random func() int64) *Store {
	if random == nil {
		random = rand.Int64
	}
	return &Store{entries: map[string]store.Entry{}, random: random, life: "first"}
}

func (s *Store) open(ctx context.Context, op, key string) error {
	if err := store.ContextError(ctx); err != nil {
		return fmt.Errorf("memstore: %s %q: %w", op, key, err)
	}
	if s.closed {
		return fmt.Errorf("memstore: %s %q: %w: the store is closed", op, key, store.ErrUnavailable)
	}
	return nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx, "get", key); err != nil {
		return store.Entry{}, err
	}
	e, ok := s.entries[key]
	if !ok {
		return store.Entry{}, fmt.Errorf("memstore: get %q: %w", key, store.ErrNotFound)
	}
	e.Value = slices.Clone(e.Value)
	return e, nil
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	if err := store.CheckValue(key, value); err != nil {
		return store.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx, "compare-and-swap", key); err != nil {
		return store.Entry{}, err
	}
	if now := s.entries[key].Revision; now != old {
		return store.Entry{}, fmt.Errorf("memstore: compare-and-swap %q: %w: revision %d, not %d", key, store.ErrConflict, now, old)
	}
	e := store.Entry{Key: key, Value: slices.Clone(value), Revision: store.Revision(s.random() | 1)} // never 0
	s.entries[key] = e
	e.Value, e.Life = value, s.life
	return e, nil
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx, "list", prefix); err != nil {
		return nil, err
	}
	var list []store.Entry
	for _, key := range slices.Sorted(maps.Keys(s.entries)) {
		if strings.HasPrefix(key, prefix) {
			e := s.entries[key]
			e.Value = slices.Clone(e.Value)
			list = append(list, e)
		}
	}
	return list, nil
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Embedded implements [store.Embedded].
func (s *Store) Embedded() bool { return true }

// A Snapshot is the content of a store at one moment.
type Snapshot map[string]store.Entry

// Snapshot returns the present content, for [Store.Restore].
func (s *Store) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.entries)
}

// Restore puts the content back to what it was, as a restored back-up does; a
// nil snapshot wipes the store. It begins no new life: that a store was set back is
// not always told ([Store.BeginLife]).
func (s *Store) Restore(to Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = maps.Clone(to)
	if s.entries == nil {
		s.entries = map[string]store.Entry{}
	}
}

// BeginLife begins a life of the store, under a name that it never had. Its first
// is "first".
func (s *Store) BeginLife(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = name
}

// Delete removes a key, as an eviction does.
func (s *Store) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key)
}
