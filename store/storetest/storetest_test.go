package storetest_test

import (
	"context"
	"errors"
	"fmt"
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
	get  func(ctx context.Context, s store.Store, key string) (store.Entry, error)
	swap func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error)
	list func(ctx context.Context, s store.Store, prefix string) ([]store.Entry, error)

	restart func(*memstore.Store)
	closing context.Context
	close   context.CancelFunc
}

// closes waits until the store is closed, in a call of the claim about that.
func (b *broken) closes(ctx context.Context, key string) bool {
	if !strings.HasPrefix(key, "closing") {
		return false
	}
	select {
	case <-b.closing.Done():
	case <-ctx.Done():
	}
	return true
}

func (b *broken) Close() error {
	b.close()
	return b.Store.Close()
}

func (b *broken) Get(ctx context.Context, key string) (store.Entry, error) {
	if b.get != nil {
		return b.get(ctx, b.Store, key)
	}
	return b.Store.Get(ctx, key)
}

func (b *broken) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if b.swap != nil {
		return b.swap(ctx, b.Store, key, old, value)
	}
	return b.Store.CompareAndSwap(ctx, key, old, value)
}

func (b *broken) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if b.list != nil {
		return b.list(ctx, b.Store, prefix)
	}
	return b.Store.List(ctx, prefix)
}

// A fault is a typical bug of a backend.
type fault struct {
	name  string
	claim string // of the suite, which fails for it
	store func() *broken
}

var handles atomic.Int64 // that were opened so far

// sharing is a store that keeps the bytes which says; its reads return these, or a copy unless readers is
// set.
func sharing(which func(written store.Entry, given []byte) []byte, readers bool) *broken {
	var shared sync.Map
	return &broken{
		swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			if err == nil {
				shared.Store(written.Revision, which(written, value))
			}
			return written, err
		},
		get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
			e, err := s.Get(ctx, key)
			if held, ok := shared.Load(e.Revision); ok && err == nil {
				e.Value = held.([]byte)
				if !readers {
					e.Value = slices.Clone(e.Value)
				}
			}
			return e, err
		},
	}
}

var faults = []fault{
	{"create replaces", "old 0 creates and never replaces", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(ctx, key); err == nil && old == 0 {
				old = e.Revision
			}
			return s.CompareAndSwap(ctx, key, old, value)
		}}
	}},
	{"the revision is not compared", "a write needs the present revision and draws a new one", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(ctx, key); err == nil && old != 0 {
				old = e.Revision
			}
			return s.CompareAndSwap(ctx, key, old, value)
		}}
	}},
	{"an absent key may be written from any revision", "an absent key is not found", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if _, err := s.Get(ctx, key); errors.Is(err, store.ErrNotFound) {
				old = 0
			}
			return s.CompareAndSwap(ctx, key, old, value)
		}}
	}},
	{"a write of the same value changes nothing", "a write needs the present revision and draws a new one", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(ctx, key); err == nil && e.Revision == old && string(e.Value) == string(value) {
				return e, nil
			}
			return s.CompareAndSwap(ctx, key, old, value)
		}}
	}},
	{"a conflict is no conflict to errors.Is", "an absent key is not found", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			if errors.Is(err, store.ErrConflict) {
				err = errors.New(err.Error())
			}
			return written, err
		}}
	}},
	{"keys are distinguished without case", "keys are distinguished byte for byte", func() *broken {
		return &broken{
			get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
				return s.Get(ctx, strings.ToLower(key))
			},
			swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
				return s.CompareAndSwap(ctx, strings.ToLower(key), old, value)
			},
		}
	}},
	{"trailing spaces of a key are dropped", "keys are distinguished byte for byte", func() *broken {
		return &broken{get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
			return s.Get(ctx, strings.TrimRight(key, " "))
		}}
	}},
	{"a percent sign in a prefix is a pattern", "a listing has what begins with the prefix, sorted by bytes", func() *broken {
		return &broken{list: func(ctx context.Context, s store.Store, prefix string) ([]store.Entry, error) {
			before, _, _ := strings.Cut(prefix, "%")
			return s.List(ctx, before)
		}}
	}},
	{"a listing is not sorted", "a listing has what begins with the prefix, sorted by bytes", func() *broken {
		return &broken{list: func(ctx context.Context, s store.Store, prefix string) ([]store.Entry, error) {
			list, err := s.List(ctx, prefix)
			slices.Reverse(list)
			return list, err
		}}
	}},
	{"a listing stops at a thousand", "a listing of thousands is whole", func() *broken {
		return &broken{list: func(ctx context.Context, s store.Store, prefix string) ([]store.Entry, error) {
			list, err := s.List(ctx, prefix)
			return list[:min(len(list), 1000)], err
		}}
	}},
	{"a value ends at its first NUL", "values come back byte for byte", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			before, _, _ := strings.Cut(string(value), "\x00")
			return s.CompareAndSwap(ctx, key, old, []byte(before))
		}}
	}},
	{"a value is made UTF-8", "values come back byte for byte", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			return s.CompareAndSwap(ctx, key, old, []byte(strings.ToValidUTF8(string(value), "?")))
		}}
	}},
	{"compare and swap are two steps", "concurrent writers lose no write", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if e, err := s.Get(ctx, key); err == nil && e.Revision != old || err != nil && old != 0 {
				return s.CompareAndSwap(ctx, key, old, value)
			}
			for {
				runtime.Gosched() // yields to another goroutine, as a network call does
				e, _ := s.Get(ctx, key)
				written, err := s.CompareAndSwap(ctx, key, e.Revision, value)
				if !errors.Is(err, store.ErrConflict) {
					return written, err
				}
			}
		}}
	}},
	{"reads come from a cache", "a write needs the present revision and draws a new one", func() *broken {
		var (
			mu    sync.Mutex
			cache = map[string]store.Entry{}
			reads int
		)
		return &broken{get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
			mu.Lock()
			defer mu.Unlock()
			if e, ok := cache[key]; ok && reads%3 != 0 {
				reads++
				return e, nil
			}
			reads++
			e, err := s.Get(ctx, key)
			if err == nil {
				cache[key] = e
			}
			return e, err
		}}
	}},
	{"each write names a life of its own", "all handles name one life", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			written.Life = key
			return written, err
		}}
	}},
	{"a read names a life", "old 0 creates and never replaces", func() *broken {
		return &broken{get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
			e, err := s.Get(ctx, key)
			e.Life = "first"
			return e, err
		}}
	}},
	{"a restart begins a life for each handle", "all handles name one life after a restart", func() *broken {
		var restarted atomic.Bool // writers continue meanwhile
		b := &broken{restart: func(*memstore.Store) { restarted.Store(true) }}
		b.swap = func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			if restarted.Load() {
				written.Life = "second"
			}
			return written, err
		}
		return b
	}},
	{"an error has no fields", "an absent key is not found", func() *broken {
		return &broken{get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
			e, err := s.Get(ctx, key)
			if errors.Is(err, store.ErrNotFound) {
				err = store.ErrNotFound
			}
			return e, err
		}}
	}},
	{"a write returns no value", "old 0 creates and never replaces", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			written.Value = nil
			return written, err
		}}
	}},
	{"a restart forgets", "what was acknowledged survives a restart", func() *broken {
		return &broken{restart: func(m *memstore.Store) { m.Restore(nil) }}
	}},
	{"a restart goes back to an older copy", "what was acknowledged survives a restart", func() *broken {
		var older memstore.Snapshot
		return &broken{restart: func(m *memstore.Store) {
			now := m.Snapshot()
			m.Restore(older)
			older = now
		}}
	}},
	{"a read waits although its context has ended", "a call to a silent server ends with its context", func() *broken {
		return &broken{get: func(_ context.Context, s store.Store, key string) (store.Entry, error) {
			return s.Get(context.Background(), key)
		}}
	}},
	{"an absent key is empty", "an absent key is not found", func() *broken {
		return &broken{get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
			e, err := s.Get(ctx, key)
			if errors.Is(err, store.ErrNotFound) {
				return store.Entry{Key: key}, nil
			}
			return e, err
		}}
	}},
	{"a write is made although its context has ended", "a call whose context has ended says so", func() *broken {
		return &broken{swap: func(_ context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			return s.CompareAndSwap(context.Background(), key, old, value)
		}}
	}},
	{"a write is made and then says that its context has ended", "a call whose context has ended says so", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(context.WithoutCancel(ctx), key, old, value)
			if ctx.Err() != nil {
				return store.Entry{}, store.ContextError(ctx)
			}
			return written, err
		}}
	}},
	{"an ended context's cause is left out", "a call whose context has ended says so", func() *broken {
		return &broken{list: func(ctx context.Context, s store.Store, prefix string) ([]store.Entry, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return s.List(ctx, prefix)
		}}
	}},
	{"a write returns the bytes it was given", "a value belongs to whoever holds it", func() *broken {
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			written.Value = value
			return written, err
		}}
	}},
	{"a write returns the bytes that are stored", "a value belongs to whoever holds it", func() *broken {
		return sharing(func(written store.Entry, _ []byte) []byte { return written.Value }, false)
	}},
	{"the bytes given are stored", "a value belongs to whoever holds it", func() *broken {
		return sharing(func(_ store.Entry, given []byte) []byte { return given }, false)
	}},
	{"a read returns the bytes that are stored", "a value belongs to whoever holds it", func() *broken {
		return sharing(func(written store.Entry, _ []byte) []byte { return slices.Clone(written.Value) }, true)
	}},
	{"a conflict is answered and the write is applied", "concurrent writers lose no write", func() *broken {
		var busy, writes atomic.Int64
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			defer busy.Add(-1)
			alone := busy.Add(1) == 1 || writes.Add(1)%10 != 0
			runtime.Gosched() // yields to another goroutine, as a network call does
			written, err := s.CompareAndSwap(ctx, key, old, value)
			if err == nil && !alone {
				return store.Entry{}, &store.CallError{Store: "late", Op: "compare-and-swap", Key: key, Err: store.ErrConflict}
			}
			return written, err
		}}
	}},
	{"a conflict is answered and the write arrives later", "one of many creators wins", func() *broken {
		var (
			mu   sync.Mutex
			late = map[string]func(s store.Store){}
		)
		return &broken{
			get: func(ctx context.Context, s store.Store, key string) (store.Entry, error) {
				e, err := s.Get(ctx, key)
				mu.Lock()
				defer mu.Unlock()
				if arrive := late[key]; arrive != nil { // after this read
					delete(late, key)
					arrive(s)
				}
				return e, err
			},
			swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
				written, err := s.CompareAndSwap(ctx, key, old, value)
				if old == 0 && errors.Is(err, store.ErrConflict) && string(value) != "conflicting" { // sent twice, the second time over what it finds
					mu.Lock()
					defer mu.Unlock()
					late[key] = func(s store.Store) {
						e, _ := s.Get(context.Background(), key)
						_, _ = s.CompareAndSwap(context.Background(), key, e.Revision, value)
					}
				}
				return written, err
			},
		}
	}},
	{"a conflict begins a life", "only a loss begins a life", func() *broken {
		var conflicts atomic.Int64
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			if errors.Is(err, store.ErrConflict) {
				conflicts.Add(1)
			}
			if err == nil {
				written.Life += strings.Repeat("'", int(conflicts.Load()))
			}
			return written, err
		}}
	}},
	{"each handle begins a life", "all handles name one life", func() *broken {
		life := fmt.Sprint("life ", handles.Add(1))
		return &broken{swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			if err == nil {
				written.Life = life
			}
			return written, err
		}}
	}},
	{"the first listing after a write leaves out an entry", "readers never see a write undone", func() *broken {
		var wrote atomic.Bool
		return &broken{
			swap: func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
				defer wrote.Store(true)
				return s.CompareAndSwap(ctx, key, old, value)
			},
			list: func(ctx context.Context, s store.Store, prefix string) ([]store.Entry, error) {
				list, err := s.List(ctx, prefix)
				if wrote.Swap(false) && len(list) > 0 {
					list = list[1:]
				}
				return list, err
			},
		}
	}},
	{"a listing is of the moment of the one before", "a listing of thousands is whole", func() *broken {
		var before atomic.Pointer[[]store.Entry]
		return &broken{list: func(ctx context.Context, s store.Store, prefix string) ([]store.Entry, error) {
			list, err := s.List(ctx, prefix)
			if older := before.Swap(&list); older != nil && err == nil {
				return *older, nil
			}
			return list, err
		}}
	}},
	{"a call waits although the store was closed", "calls in flight end when the store is closed", func() *broken {
		b := &broken{}
		b.swap = func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			if old == 0 || !b.closes(ctx, key) {
				return s.CompareAndSwap(ctx, key, old, value)
			}
			<-ctx.Done()
			return store.Entry{}, &store.CallError{Store: "deaf", Op: "compare-and-swap", Key: key, Err: store.ContextError(ctx)}
		}
		return b
	}},
	{"a write whose answer closing has cut off is called a conflict", "calls in flight end when the store is closed", func() *broken {
		b := &broken{}
		b.swap = func(ctx context.Context, s store.Store, key string, old store.Revision, value []byte) (store.Entry, error) {
			written, err := s.CompareAndSwap(ctx, key, old, value)
			if old != 0 && err == nil && b.closes(ctx, key) {
				return store.Entry{}, &store.CallError{Store: "hasty", Op: "compare-and-swap", Key: key, Err: store.ErrConflict}
			}
			return written, err
		}
		return b
	}},
}

const faultVariable = "FIRN_STORETEST_FAULT"

// TestABrokenStore runs the suite over a store with a fault when the test below starts it; otherwise
// it does nothing.
func TestABrokenStore(t *testing.T) {
	for _, f := range faults {
		if f.name == os.Getenv(faultVariable) {
			storetest.LosePatience()
			storetest.Run(t, memory(func(s store.Store) store.Store {
				b := f.store()
				b.Store = s
				b.closing, b.close = context.WithCancel(context.Background())
				return b
			}))
		}
	}
}

func TestTheSuiteFindsEveryFault(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestABrokenStore$")
			cmd.Env = append(os.Environ(), faultVariable+"="+f.name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: TestABrokenStore/"+strings.ReplaceAll(f.claim, " ", "_")+" (") {
				t.Errorf("the suite does not find it by the claim %q: %v\n%s", f.claim, err, out)
			}
			if strings.Contains(string(out), "panic:") || strings.Contains(string(out), "DATA RACE") {
				t.Errorf("it did not fail by a claim:\n%s", out)
			}
		})
	}
}
