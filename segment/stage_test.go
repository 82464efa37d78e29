package segment_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// errStuck is what a wait ends with that nothing on stage can end.
var errStuck = errors.New("no actor is left")

// stage is time and turns under a test's control, in one goroutine: what is
// started in the background acts when somebody waits, or when the test says so,
// in an order that the seed decides.
type stage struct {
	waking func() // what others do before who has waited goes on; nil for nothing
	random *rand.Rand
	now    time.Duration
	tasks  []func()
}

func newStage(seed uint64) *stage { return &stage{random: rand.New(rand.NewPCG(seed, 1))} }

func (s *stage) Wall() time.Time          { return noon.Add(s.now) }
func (s *stage) Monotonic() time.Duration { return s.now }
func (s *stage) Go(do func())             { s.tasks = append(s.tasks, do) }

func (s *stage) Sleep(ctx context.Context, d time.Duration) error {
	s.now += d
	return context.Cause(ctx)
}

func (s *stage) Wait(ctx context.Context, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			if waking := s.waking; waking != nil {
				s.waking = nil
				waking()
				s.waking = waking
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		if !s.act() {
			return errStuck
		}
	}
}

func (s *stage) WithTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// act lets one task run and reports whether there was any.
func (s *stage) act() bool {
	if len(s.tasks) == 0 {
		return false
	}
	i := s.random.IntN(len(s.tasks))
	do := s.tasks[i]
	s.tasks = slices.Delete(s.tasks, i, i+1)
	do()
	return true
}

// settle lets all tasks run.
func (s *stage) settle() {
	for s.act() {
	}
}

// world is processes over one store on one stage, with every id they make.
type world struct {
	t     *testing.T
	stage *stage
	mem   *memstore.Store
	store *storetest.Faulty
	seen  map[string]map[firn.ID]bool
	last  map[*segment.Namespace]firn.ID
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, stage: newStage(seed), seen: map[string]map[firn.ID]bool{}, last: map[*segment.Namespace]firn.ID{},
	}
	w.mem = memstore.New(w.stage.random.Uint64)
	w.store = storetest.NewFaulty(w.mem)
	return w
}

func (w *world) open(change ...func(*segment.Config)) *segment.Segments {
	w.t.Helper()
	cfg := segment.Config{Store: w.store, Time: w.stage, Random: w.stage.random.Uint64}
	for _, c := range change {
		c(&cfg)
	}
	if cfg.Source != nil {
		cfg.Store = nil
	}
	s, err := segment.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) name(s *segment.Segments, name string) *segment.Namespace {
	w.t.Helper()
	n, err := s.Namespace(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) orders(change ...func(*segment.Config)) *segment.Namespace {
	w.t.Helper()
	return w.name(w.open(change...), "orders")
}

// note fails on an id that was made before, or below one of the same process.
func (w *world) note(n *segment.Namespace, id firn.ID) {
	w.t.Helper()
	seen := w.seen[n.String()]
	if seen == nil {
		seen = map[firn.ID]bool{}
		w.seen[n.String()] = seen
	}
	if seen[id] {
		w.t.Fatalf("id %d of %s a second time", id, n)
	}
	if last, ok := w.last[n]; ok && id <= last {
		w.t.Fatalf("id %d of %s after %d in the same process", id, n, last)
	}
	seen[id], w.last[n] = true, id
}

// take makes count ids, one by one, in runs or in a batch.
func (w *world) take(n *segment.Namespace, count int) (last firn.ID, err error) {
	w.t.Helper()
	ctx := context.Background()
	switch w.stage.random.IntN(3) {
	case 0:
		for range count {
			id, err := n.Next(ctx)
			if err != nil {
				return last, err
			}
			w.note(n, id)
			last = id
		}
	case 1:
		for count > 0 {
			r, err := n.Take(ctx, count)
			if err != nil {
				return last, err
			}
			if r.Len() < 1 || r.Len() > count {
				w.t.Fatalf("a range of %d ids, 1 to %d were asked for", r.Len(), count)
			}
			for id := range r.All() {
				w.note(n, id)
				last = id
			}
			count -= r.Len()
		}
	default:
		ids := make([]firn.ID, count)
		filled, err := n.Fill(ctx, ids)
		for _, id := range ids[:filled] {
			w.note(n, id)
			last = id
		}
		return last, err
	}
	return last, nil
}

func (w *world) mustTake(n *segment.Namespace, count int) firn.ID {
	w.t.Helper()
	last, err := w.take(n, count)
	if err != nil {
		w.t.Fatal(err)
	}
	return last
}

func (w *world) close(s *segment.Segments) {
	w.t.Helper()
	if err := s.Close(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// steps sets both bounds.
func steps(least, most int64) func(*segment.Config) {
	return func(c *segment.Config) { c.MinStep, c.MaxStep = least, most }
}

// before lets something happen before each call of a store.
type before struct {
	store.Store
	do func()
}

func (b before) Get(ctx context.Context, key string) (store.Entry, error) {
	b.do()
	return b.Store.Get(ctx, key)
}

func (b before) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	b.do()
	return b.Store.CompareAndSwap(ctx, key, old, value)
}
