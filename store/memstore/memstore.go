// Package memstore is a [store.Store] in memory, for tests, demonstrations and single processes.
//
// It ends with its process, and no other process sees it. Do not use it where ids must stay unique
// beyond that: workers would be granted twice, and counters start over. Package filestore needs no
// server either.
package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/firn-id/firn/store"
)

// life names the only life of each store. It ends with its process.
const life = "first"

// Store is a map under a mutex. Make one with [New]. Do not copy it.
type Store struct {
	mu      sync.Mutex
	entries map[string]store.Entry
	keys    []string // of the entries, in order
	random  func() uint64
	writes  uint64
	closed  bool
}

// New returns an empty store. Random returns 64 random bits, for half of each revision, and is called under a lock;
// nil stands for math/rand/v2. Tests that replay a seed need their own.
func New(random func() uint64) *Store {
	if random == nil {
		random = rand.Uint64
	}
	return &Store{entries: map[string]store.Entry{}, random: random}
}

// locked runs a call on the entries, unless ctx has ended or the store is closed.
func locked[T any](ctx context.Context, s *Store, op, key string, call func() (T, error)) (value T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = store.ContextError(ctx); err == nil && s.closed {
		err = fmt.Errorf("%w: the store is closed", store.ErrUnavailable)
	}
	if err == nil {
		value, err = call()
	}
	if err != nil {
		return value, &store.CallError{Store: "memstore", Op: op, Key: key, Err: err}
	}
	return value, nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	return locked(ctx, s, "get", key, func() (store.Entry, error) {
		e, ok := s.entries[key]
		if !ok {
			return store.Entry{}, store.ErrNotFound
		}
		return copied(e), nil
	})
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := cmp.Or(store.CheckKey(key), store.CheckValue(key, value)); err != nil {
		return store.Entry{}, err
	}
	return locked(ctx, s, "compare-and-swap", key, func() (store.Entry, error) {
		if now := s.entries[key].Revision; now != old {
			return store.Entry{}, fmt.Errorf("%w: revision %d, not %d", store.ErrConflict, now, old)
		}
		e := store.Entry{Key: key, Value: value, Revision: s.revision()}
		if _, known := s.entries[key]; !known {
			at, _ := slices.BinarySearch(s.keys, key)
			s.keys = slices.Insert(s.keys, at, key)
		}
		s.entries[key] = copied(e)
		e.Life = life
		return copied(e), nil
	})
}

// revision returns that of the next write, which is positive. Half of it counts writes, so that none of this store had
// it before, not even if random is constant. The other half is drawn, so that no other store is likely to have it.
func (s *Store) revision() store.Revision {
	s.writes++
	return store.Revision(s.random()>>33<<32 | s.writes%math.MaxUint32 + 1)
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return locked(ctx, s, "list", prefix, func() (list []store.Entry, err error) {
		first, _ := slices.BinarySearch(s.keys, prefix)
		for _, key := range s.keys[first:] {
			if !strings.HasPrefix(key, prefix) {
				break
			}
			list = append(list, copied(s.entries[key]))
		}
		return list, nil
	})
}

// copied returns an entry with its own copy of the bytes.
func copied(e store.Entry) store.Entry {
	e.Value = slices.Clone(e.Value)
	return e
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return store.Traits{Embedded: true} }

// A Snapshot is the content of a store at one moment.
type Snapshot map[string]store.Entry

// Snapshot returns the present content, for [Store.Restore].
func (s *Store) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.entries)
}

// Restore puts the content back, like a restored backup; nil wipes the store. It begins no new life: a
// real store does not always notice a restore.
func (s *Store) Restore(to Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = map[string]store.Entry{}
	maps.Copy(s.entries, to)
	s.keys = slices.Sorted(maps.Keys(to))
}

// Delete removes a key, like an eviction.
func (s *Store) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := slices.BinarySearch(s.keys, key); known {
		s.keys = slices.Delete(s.keys, at, at+1)
	}
	delete(s.entries, key)
}
