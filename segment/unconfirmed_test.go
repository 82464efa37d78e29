package segment_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// unconfirmed applies every write and confirms no write, like a primary that was cut
// off from its replicas.
func unconfirmed(c storetest.Call) storetest.Outcome {
	if c.Op == storetest.OpCompareAndSwap {
		return storetest.FailApplied
	}
	return storetest.Pass
}

// asks are all the ways to ask a name for ids.
var asks = map[string]func(ctx context.Context, n *segment.Namespace) (segment.Range, error){
	"next": func(ctx context.Context, n *segment.Namespace) (segment.Range, error) {
		id, err := n.Next(ctx)
		return segment.Range{First: id, Count: 1, Stride: 1}, err
	},
	"take":        func(ctx context.Context, n *segment.Namespace) (segment.Range, error) { return n.Take(ctx, 5) },
	"consecutive": func(ctx context.Context, n *segment.Namespace) (segment.Range, error) { return n.Reserve(ctx, 150) },
	"raise": func(ctx context.Context, n *segment.Namespace) (segment.Range, error) {
		if err := n.Raise(ctx, 6); err != nil {
			return segment.Range{}, err
		}
		return n.Take(ctx, 5)
	},
}

func TestAStoreThatConfirmsNothingIssuesNothing(t *testing.T) {
	for way, ask := range asks {
		for _, stripe := range []segment.Stripe{whole, odd} {
			if way == "consecutive" && stripe != whole {
				continue
			}
			t.Run(fmt.Sprint(way, " ", stripe), func(t *testing.T) {
				w := newWorld(t, 1)
				w.store.Script = unconfirmed
				striped := func(c *segment.Config) { c.Offset, c.Stride = stripe.Offset, stripe.Stride }
				n := w.orders(steps(100, 100), striped)
				for range 50 {
					if r, err := ask(t.Context(), n); err == nil {
						t.Fatalf("%v was issued", r)
					}
					w.stage.now += 1e9
				}
				counter, err := segment.ReadCounter(t.Context(), w.mem, "orders")
				if err != nil || counter.Next > 1000 {
					t.Errorf("the counter went to %+v, %v: each try took ids", counter, err)
				}
				w.store.Script = nil
				r, err := ask(t.Context(), n)
				if err != nil || r.First > 7 {
					t.Errorf("when it confirms again: %v, %v", r, err)
				}
			})
		}
	}
}

func TestASourceOverAStoreThatConfirmsNothingGrantsNothing(t *testing.T) {
	f := storetest.NewFaulty(memstore.New(nil))
	f.Script = unconfirmed
	s := mustSource(t, segment.Config{Store: f, Time: newStage(1), Random: newStage(1).random.Uint64})
	for step := range int64(100) {
		if r, err := s.Fetch(t.Context(), "orders", segment.Ask{Step: 1 + step, Above: -1}); err == nil {
			t.Fatalf("%v was granted", r)
		}
	}
	f.Script = nil
	for _, want := range []segment.Range{{First: 1, Count: 7, Stride: 1}, {First: 8, Count: 20, Stride: 1}} { // of the step asked for, not of the lost one
		r, err := s.Fetch(t.Context(), "orders", segment.Ask{Step: want.Count, Above: -1})
		if err != nil || r.String() != want.String() {
			t.Errorf("%v, %v, want %v", r, err, want)
		}
	}
}

func mustSource(t *testing.T, cfg segment.Config) segment.Source {
	t.Helper()
	s, err := segment.NewSource(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A store that split into two that both answer: the one that was cut off confirms
// nothing, whatever it shows.
func TestTheTwoSidesOfASplitStoreIssueNoIDTwice(t *testing.T) {
	for way, ask := range asks {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, 1)
			left := w.orders(steps(100, 100))
			w.mustTake(left, 30)
			promoted := memstore.New(nil)
			promoted.Restore(w.mem.Snapshot())
			w.store.Script = unconfirmed // and w.mem goes its own way from here
			right := w.orders(steps(100, 100), func(c *segment.Config) { c.Store = promoted })
			late := w.orders(steps(100, 100)) // a process that begins on the wrong side
			issued := 0
			for range 200 {
				for _, n := range []*segment.Namespace{left, right, late} {
					r, err := ask(t.Context(), n)
					for id := range r.All() {
						if err == nil {
							w.note(n, id) // fails on one that was issued before
						}
					}
					if err == nil && n == late {
						t.Fatalf("%v was issued on the wrong side", r)
					}
					if err == nil {
						issued++
					}
					w.stage.settle()
				}
				w.stage.now += 1e9
			}
			if issued < 200 {
				t.Errorf("%d calls had ids", issued)
			}
		})
	}
}

// A lost range is taken again by one fetch, however many there are at once.
func TestALostRangeIsTakenAgainOnce(t *testing.T) {
	for range 30 {
		mem := memstore.New(nil)
		f := storetest.NewFaulty(mem)
		f.Script = unconfirmed
		s := mustSource(t, segment.Config{Store: f})
		if r, err := s.Fetch(t.Context(), "orders", segment.Ask{Step: 10, Above: -1}); err == nil {
			t.Fatalf("%v was granted", r)
		}
		f.Script = nil
		var (
			mu   sync.Mutex
			seen = map[firn.ID]bool{}
			all  sync.WaitGroup
		)
		for range 4 {
			all.Go(func() {
				r, err := s.Fetch(context.Background(), "orders", segment.Ask{Step: 10, Above: -1})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				for id := range r.All() {
					if seen[id] {
						t.Errorf("%d twice", id)
					}
					seen[id] = true
				}
			})
		}
		all.Wait()
		if len(seen) != 40 {
			t.Fatalf("%d ids", len(seen))
		}
	}
}

// What was read may be the lost range of a fetch that goes on: only its own register
// knows whose it is.
func TestALostRangeBecomesAGapOnceOthersGoOnFromIt(t *testing.T) {
	w := newWorld(t, 1)
	w.store.Script = unconfirmed
	s := mustSource(t, segment.Config{Store: w.store, Time: w.stage, Random: w.stage.random.Uint64})
	if r, err := s.Fetch(t.Context(), "orders", segment.Ask{Step: 10, Above: -1}); err == nil {
		t.Fatalf("%v was granted", r)
	}
	w.store.Script = nil
	other := mustSource(t, segment.Config{Store: w.mem, Time: w.stage, Random: w.stage.random.Uint64})
	theirs, err := other.Fetch(t.Context(), "orders", segment.Ask{Step: 10, Above: -1})
	if err != nil || theirs.First != 11 {
		t.Errorf("%v, %v", theirs, err)
	}
	if ours, err := s.Fetch(t.Context(), "orders", segment.Ask{Step: 10, Above: -1}); err != nil || ours.First != 21 {
		t.Errorf("%v, %v", ours, err)
	}
}

func TestARangeWithoutARecordIsNotGivenBack(t *testing.T) {
	mem := memstore.New(nil)
	to, ok := mustSource(t, segment.Config{Store: mem}).(segment.Returner)
	if !ok {
		t.Fatal("it takes nothing back")
	}
	given, err := to.Return(t.Context(), "orders", segment.Range{First: 5, Count: 10, Stride: 1})
	if given || err != nil {
		t.Errorf("%v, %v", given, err)
	}
	if _, err := segment.ReadCounter(t.Context(), mem, "orders"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a counter was made: %v", err)
	}
}

// With answers lost now and then, of every kind, each way to ask makes ids that are new.
func TestLostAnswersOfAnyKindRepeatNoID(t *testing.T) {
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate} {
		for way, ask := range asks {
			w := newWorld(t, 1)
			w.store.Script = func(c storetest.Call) storetest.Outcome {
				if c.Op == storetest.OpCompareAndSwap && w.stage.random.IntN(3) > 0 {
					return outcome
				}
				return storetest.Pass
			}
			stripe := whole
			if way != "consecutive" {
				stripe = odd
			}
			striped := func(c *segment.Config) { c.Offset, c.Stride = stripe.Offset, stripe.Stride }
			names := []*segment.Namespace{w.orders(steps(10, 200), striped), w.orders(steps(10, 200), striped)}
			calls := 0
			for round := range 400 {
				n := names[round%2]
				r, err := ask(t.Context(), n)
				if err == nil {
					calls++
					if r.Count == 1 {
						r.Stride = stripe.Stride
					}
					for id := range r.All() {
						w.note(n, id)
						if int64(id)%stripe.Stride != stripe.Offset {
							t.Fatalf("%d is not of %v", id, stripe)
						}
					}
				}
				w.stage.now += 1e8
				w.stage.settle()
			}
			if calls < 200 {
				t.Errorf("%v, %s: %d calls had ids", outcome, way, calls)
			}
		}
	}
}
