package storetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// handle is one of several handles on a memory store, each closed by itself.
type handle struct {
	*memstore.Store
	mu     sync.Mutex
	closed bool
	silent chan struct{} // while it is not nil, calls wait until it is closed
}

// answer waits while the store is silent, as long as ctx lasts.
func (h *handle) answer(ctx context.Context) {
	h.mu.Lock()
	silent := h.silent
	h.mu.Unlock()
	if silent != nil {
		select {
		case <-silent:
		case <-ctx.Done():
		}
	} // the memory store checks itself that ctx has ended
}

func (h *handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return nil
}

func (h *handle) gone() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return &store.CallError{Store: "handle", Op: "call", Err: store.ErrUnavailable}
	}
	return nil
}

func (h *handle) Get(ctx context.Context, key string) (store.Entry, error) {
	h.answer(ctx)
	e, err := h.Store.Get(ctx, key)
	return e, errors.Join(err, h.gone())
}

func (h *handle) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	h.answer(ctx)
	list, err := h.Store.List(ctx, prefix)
	return list, errors.Join(err, h.gone())
}

func (h *handle) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := h.gone(); err != nil {
		return store.Entry{}, err
	}
	h.answer(ctx)
	return h.Store.CompareAndSwap(ctx, key, old, value)
}

// memory is a factory of healthy stores, each wrapped by wrap.
func memory(wrap func(store.Store) store.Store) storetest.Factory {
	inner := map[store.Store]*memstore.Store{}
	handles := map[store.Store]*handle{}
	open := func(m *memstore.Store) store.Store {
		h := &handle{Store: m}
		s := wrap(h)
		inner[s], handles[s] = m, h
		return s
	}
	return storetest.Factory{
		Open:    func(*testing.T) store.Store { return open(memstore.New(nil)) },
		Another: func(_ *testing.T, s store.Store) store.Store { return open(inner[s]) },
		Delete:  func(_ *testing.T, s store.Store, key string) { inner[s].Delete(key) },
		Restart: func(_ *testing.T, s store.Store) {
			if b, ok := s.(*broken); ok && b.restart != nil {
				b.restart(inner[s])
			}
		},
		Pause: func(_ *testing.T, s store.Store) func() {
			h, silent := handles[s], make(chan struct{})
			set := func(c chan struct{}) {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.silent = c
			}
			set(silent)
			return func() {
				set(nil)
				close(silent)
			}
		},
	}
}

func TestAStoreInGoodOrderPasses(t *testing.T) {
	storetest.Run(t, memory(func(s store.Store) store.Store { return s }))
}

// broken is a store with a fault: each method does what its field says, or what the healthy store
// does.
type broken struct {
	store.Store
	get  func(s store.Store, key string) (store.Entry, error)
	swap func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error)
	list func(s store.Store, prefix string) ([]store.Entry, error)

	restart func(*memstore.Store)
}

func (b *broken) Get(ctx context.Context, key string) (store.Entry, error) {
	if b.get != nil && ctx.Err() == nil {
		return b.get(b.Store, key)
	}
	return b.Store.Get(ctx, key)
}

func (b *broken) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if b.swap != nil && ctx.Err() == nil {
		return b.swap(b.Store, key, old, value)
	}
	return b.Store.CompareAndSwap(ctx, key, old, value)
}

func (b *broken) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if b.list != nil && ctx.Err() == nil {
		return b.list(b.Store, prefix)
	}
	return b.Store.List(ctx, prefix)
}

var bg = context.Background()

// faults are typical bugs of backends.
var faults = map[string]func() *broken{
	"create replaces": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(bg, key); err == nil && old == 0 {
				old = e.Revision
			}
			return s.CompareAndSwap(bg, key, old, value)
		}}
	},
	"the revision is not compared": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(bg, key); err == nil && old != 0 {
				old = e.Revision
			}
			return s.CompareAndSwap(bg, key, old, value)
		}}
	},
	"an absent key may be written from any revision": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if _, err := s.Get(bg, key); errors.Is(err, store.ErrNotFound) {
				old = 0
			}
			return s.CompareAndSwap(bg, key, old, value)
		}}
	},
	"a write of the same value changes nothing": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(bg, key); err == nil && e.Revision == old && string(e.Value) == string(value) {
				return e, nil
			}
			return s.CompareAndSwap(bg, key, old, value)
		}}
	},
	"a conflict is no conflict to errors.Is": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(bg, key, old, value)
			if errors.Is(err, store.ErrConflict) {
				err = errors.New(err.Error())
			}
			return written, err
		}}
	},
	"keys are distinguished without case": func() *broken {
		return &broken{
			get: func(s store.Store, key string) (store.Entry, error) { return s.Get(bg, strings.ToLower(key)) },
			swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
				return s.CompareAndSwap(bg, strings.ToLower(key), old, value)
			},
		}
	},
	"trailing spaces of a key are dropped": func() *broken {
		return &broken{get: func(s store.Store, key string) (store.Entry, error) {
			return s.Get(bg, strings.TrimRight(key, " "))
		}}
	},
	"a percent sign in a prefix is a pattern": func() *broken {
		return &broken{list: func(s store.Store, prefix string) ([]store.Entry, error) {
			before, _, _ := strings.Cut(prefix, "%")
			return s.List(bg, before)
		}}
	},
	"a listing is not sorted": func() *broken {
		return &broken{list: func(s store.Store, prefix string) ([]store.Entry, error) {
			list, err := s.List(bg, prefix)
			slices.Reverse(list)
			return list, err
		}}
	},
	"a listing stops at a thousand": func() *broken {
		return &broken{list: func(s store.Store, prefix string) ([]store.Entry, error) {
			list, err := s.List(bg, prefix)
			return list[:min(len(list), 1000)], err
		}}
	},
	"a value ends at its first NUL": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			before, _, _ := strings.Cut(string(value), "\x00")
			return s.CompareAndSwap(bg, key, old, []byte(before))
		}}
	},
	"a value is made UTF-8": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			return s.CompareAndSwap(bg, key, old, []byte(strings.ToValidUTF8(string(value), "?")))
		}}
	},
	"compare and swap are two steps": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(bg, key); err == nil && e.Revision != old || err != nil && old != 0 {
				return s.CompareAndSwap(bg, key, old, value)
			}
			for {
				runtime.Gosched() // yields to another goroutine, as a network call does
				e, _ := s.Get(bg, key)
				written, err := s.CompareAndSwap(bg, key, e.Revision, value)
				if !errors.Is(err, store.ErrConflict) {
					return written, err
				}
			}
		}}
	},
	"reads come from a cache": func() *broken {
		var (
			mu    sync.Mutex
			cache = map[string]store.Entry{}
			reads int
		)
		return &broken{get: func(s store.Store, key string) (store.Entry, error) {
			mu.Lock()
			defer mu.Unlock()
			if e, ok := cache[key]; ok && reads%3 != 0 {
				reads++
				return e, nil
			}
			reads++
			e, err := s.Get(bg, key)
			if err == nil {
				cache[key] = e
			}
			return e, err
		}}
	},
	"each write names a life of its own": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(bg, key, old, value)
			written.Life = key
			return written, err
		}}
	},
	"a read names a life": func() *broken {
		return &broken{get: func(s store.Store, key string) (store.Entry, error) {
			e, err := s.Get(bg, key)
			e.Life = "first"
			return e, err
		}}
	},
	"a restart begins a life for each handle": func() *broken {
		var restarted atomic.Bool // writers continue meanwhile
		b := &broken{restart: func(*memstore.Store) { restarted.Store(true) }}
		b.swap = func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(bg, key, old, value)
			if restarted.Load() {
				written.Life = "second"
			}
			return written, err
		}
		return b
	},
	"an error has no fields": func() *broken {
		return &broken{get: func(s store.Store, key string) (store.Entry, error) {
			e, err := s.Get(bg, key)
			if errors.Is(err, store.ErrNotFound) {
				err = store.ErrNotFound
			}
			return e, err
		}}
	},
	"a write returns no value": func() *broken {
		return &broken{swap: func(s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(bg, key, old, value)
			written.Value = nil
			return written, err
		}}
	},
	"a restart forgets": func() *broken {
		return &broken{restart: func(m *memstore.Store) { m.Restore(nil) }}
	},
	"a restart goes back to an older copy": func() *broken {
		var older memstore.Snapshot
		return &broken{restart: func(m *memstore.Store) {
			now := m.Snapshot()
			m.Restore(older)
			older = now
		}}
	},
	"a call does not look at its context": func() *broken {
		return &broken{get: func(s store.Store, key string) (store.Entry, error) { return s.Get(bg, key) }}
	},
	"an absent key is empty": func() *broken {
		return &broken{get: func(s store.Store, key string) (store.Entry, error) {
			e, err := s.Get(bg, key)
			if errors.Is(err, store.ErrNotFound) {
				return store.Entry{Key: key}, nil
			}
			return e, err
		}}
	},
}

const faultVariable = "FIRN_STORETEST_FAULT"

// TestABrokenStore runs the suite over a store with a fault when the test below starts it; otherwise
// it does nothing.
func TestABrokenStore(t *testing.T) {
	if fault, ok := faults[os.Getenv(faultVariable)]; ok {
		storetest.LosePatience()
		storetest.Run(t, memory(func(s store.Store) store.Store {
			b := fault()
			b.Store = s
			return b
		}))
	}
}

func TestTheSuiteFindsEveryFault(t *testing.T) {
	for name := range faults {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestABrokenStore$")
			cmd.Env = append(os.Environ(), faultVariable+"="+name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: TestABrokenStore/") {
				t.Errorf("the suite passes: %v\n%s", err, out)
			}
			if strings.Contains(string(out), "panic:") || strings.Contains(string(out), "DATA RACE") {
				t.Errorf("it did not fail by a claim:\n%s", out)
			}
		})
	}
}
