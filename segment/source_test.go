package segment_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// sourceFunc is a source that is a function.
type sourceFunc func(ctx context.Context, name string, ask segment.Ask) (segment.Range, error)

func (f sourceFunc) Fetch(ctx context.Context, name string, ask segment.Ask) (segment.Range, error) {
	return f(ctx, name, ask)
}

// listed is a source that hands out the ranges of a list in turn.
func listed(ranges ...segment.Range) sourceFunc {
	return func(context.Context, string, segment.Ask) (segment.Range, error) {
		if len(ranges) == 0 {
			return segment.Range{}, fmt.Errorf("the list is used up: %w", store.ErrUnavailable)
		}
		r := ranges[0]
		ranges = ranges[1:]
		return r, nil
	}
}

func TestARangeThatArrivesLateIsSortedInOrDropped(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(func(c *segment.Config) {
		c.Ahead = 1
		c.Source = listed(
			segment.Range{First: 30, Count: 1},
			segment.Range{First: 31, Count: 1},
			segment.Range{First: 40, Count: 5},                   // waited for, so that two more are to be held
			segment.Range{First: 11, Count: 10},                  // below what is in use: dropped
			segment.Range{First: 40, Count: 5, Stride: 1},        // the same again: dropped
			segment.Range{First: 44, Count: 9},                   // overlaps what is in use: dropped
			segment.Range{First: 100, Count: 3},                  // held
			segment.Range{First: 60, Count: 3, Stride: 2},        // sorted in before it
			segment.Range{First: 62, Count: 1},                   // overlaps what is held
			segment.Range{First: 57, Count: 5},                   // overlaps what is held
			segment.Range{First: 50, Count: 100},                 // overlaps what is held
			segment.Range{First: 200, Count: 1, Stride: 1 << 20}, // held
		)
	})
	var ids []firn.ID
	id, err := n.Next(t.Context())
	for ; err == nil && id < 43; id, err = n.Next(t.Context()) {
		ids = append(ids, id)
	}
	ids = append(ids, id)
	for range 40 { // fetched while no caller waits
		w.stage.now += time.Second
		if n.State().Ranges == 0 {
			_ = n.Raise(context.Background(), 45) // looks whether a fetch is due
		}
		w.stage.settle()
	}
	for {
		w.stage.now += time.Second
		if id, err = n.Next(t.Context()); err != nil {
			break
		}
		ids = append(ids, id)
	}
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, segment.ErrOrder) {
		t.Error(err)
	}
	for i, id := range ids[1:] {
		if id <= ids[i] {
			t.Errorf("%d after %d", id, ids[i])
		}
	}
	if want := "[30 31 40 41 42 43 60 62 64 100 101 102]"; fmt.Sprint(ids) != want {
		t.Errorf("issued %v, want %s", ids, want)
	}
	if s := n.State(); s.Dropped < 3 {
		t.Errorf("%+v", s)
	}
}

// TestTwoServersWhoseCountersAreApart is what made another client go from 40 back
// to 11: two servers, each with a counter of its own stripe.
func TestTwoServersWhoseCountersAreApart(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		counters := []firn.ID{1, 40_000} // odd, even
		n := w.orders(func(c *segment.Config) {
			c.Source = sourceFunc(func(context.Context, string, segment.Ask) (segment.Range, error) {
				server := w.stage.random.IntN(2)
				r := segment.Range{First: counters[server], Count: 1000, Stride: 2}
				counters[server] += 2000
				return r, nil
			})
		})
		issued := 0
		for range 1000 {
			// note fails on an id below the last
			if _, err := w.take(n, 50); err == nil {
				issued += 50
			} else if !errors.Is(err, segment.ErrOrder) {
				t.Fatal(err)
			}
			w.stage.now += 100 * time.Millisecond
		}
		if s := n.State(); issued < 25_000 || s.Dropped == 0 {
			t.Errorf("seed %d: %d ids, %+v", seed, issued, s)
		}
	}
}

func TestABrokenSourceIsAnError(t *testing.T) {
	for _, r := range []segment.Range{
		{}, {First: -1, Count: 5}, {First: -1, Count: 1}, {First: 1}, {First: 1, Count: -1}, {First: 1, Count: 1, Stride: -1},
		{First: firn.MaxID, Count: 2}, {First: 1, Count: 1 << 62, Stride: 4}, {First: 1, Count: 1, Stride: 1 << 21},
		{First: 0, Count: -1 << 63},
	} {
		w := newWorld(t, 1)
		n := w.orders(func(c *segment.Config) { c.Source = listed(r) })
		if id, err := n.Next(t.Context()); !errors.Is(err, segment.ErrSource) || id != 0 {
			t.Errorf("%+v: %d, %v", r, id, err)
		} else if of := fmt.Sprint("a range of stride ", r.Stride); strings.Contains(err.Error(), of) != (r.Stride < 0 || r.Stride > 1<<20) {
			t.Errorf("%+v: %v", r, err)
		} else if strings.Contains(err.Error(), "not a valid id") != (r.First < 0) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	w := newWorld(t, 1)
	n := w.orders(func(c *segment.Config) {
		c.Source = listed(segment.Range{First: 0, Count: 3, Stride: 5}, segment.Range{First: 18, Count: 5}, segment.Range{First: 23, Count: 1})
		c.Max = 20
	})
	for _, want := range []firn.ID{0, 5, 10, 18, 19, 20} {
		if id, err := n.Next(t.Context()); err != nil || id != want {
			t.Errorf("%d, %v, want %d", id, err, want)
		}
	}
	if _, err := n.Next(t.Context()); !errors.Is(err, segment.ErrExhausted) {
		t.Errorf("above Max: %v", err)
	}
}

func TestAFailingSourceIsAskedAfterAPauseAndNotInALoop(t *testing.T) {
	w := newWorld(t, 1)
	calls := 0
	n := w.orders(func(c *segment.Config) {
		c.Source = sourceFunc(func(context.Context, string, segment.Ask) (segment.Range, error) {
			calls++
			return segment.Range{}, store.ErrUnavailable
		})
	})
	for range 100_000 {
		if _, err := n.Next(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		w.stage.now += time.Millisecond
	}
	if calls < 200 || calls > 1000 {
		t.Errorf("%d calls in 100 s", calls)
	}
}

func TestASourceBeyondMaxIsAskedOnceAMinute(t *testing.T) {
	w := newWorld(t, 1)
	calls := 0
	n := w.orders(func(c *segment.Config) {
		c.Max = 2000
		c.Source = sourceFunc(func(_ context.Context, _ string, ask segment.Ask) (segment.Range, error) {
			calls++ // it has moved on, for nothing
			return segment.Range{First: firn.ID(1000 + 2000*calls), Count: ask.Step, Stride: 1}, nil
		})
	})
	for range 600 {
		if _, err := n.Next(t.Context()); !errors.Is(err, segment.ErrExhausted) {
			t.Fatal(err)
		}
		w.stage.now += time.Second
	}
	if calls < 5 || calls > 21 {
		t.Errorf("%d ranges in 10 minutes", calls)
	}
}

func TestASourceRefusesAnImpossibleStep(t *testing.T) {
	s := memstore.New(nil)
	source, err := segment.NewSource(segment.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Fetch(t.Context(), "orders", segment.Ask{Step: 1000, Above: -1}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{0, -500, math.MinInt64, math.MaxInt64} {
		if r, err := source.Fetch(t.Context(), "orders", segment.Ask{Step: step, Above: -1}); !errors.Is(err, firn.ErrRange) {
			t.Errorf("step %d: %v, %v", step, r, err)
		}
	}
	if now, err := segment.ReadCounter(t.Context(), s, "orders"); err != nil || now.Next != 1001 {
		t.Errorf("the counter stands at %d, %v", now.Next, err)
	}
}

func TestASourceRefusesTheNamesThatReadCounterRefuses(t *testing.T) {
	mem := memstore.New(nil)
	s := source(t, mem, nil)
	taker, ok := s.(segment.Returner)
	if !ok {
		t.Fatal("it takes nothing back")
	}
	r := fetch(t, s, 5)
	for _, name := range []string{"", "a b", "../pool", "x/pool", "ä", strings.Repeat("x", 65)} {
		if r, err := s.Fetch(t.Context(), name, segment.Ask{Step: 5, Above: -1}); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("fetched %v of %q, %v", r, name, err)
		}
		if given, err := taker.Return(t.Context(), name, r); given || !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("given back to %q: %t, %v", name, given, err)
		}
		if _, err := segment.ReadCounter(t.Context(), mem, name); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("read %q: %v", name, err)
		}
	}
}

func TestASeparateSourceSharesTheCounterWithNames(t *testing.T) {
	ctx := context.Background()
	s := memstore.New(nil)
	source, err := segment.NewSource(segment.Config{Store: s, Max: 1_000_050})
	if err != nil {
		t.Fatal(err)
	}
	all, err := segment.New(segment.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(step int64) segment.Range {
		t.Helper()
		r, err := source.Fetch(ctx, "orders", segment.Ask{Step: step, Above: -1})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := fetch(7); r.First != 1 || r.Last() != 7 {
		t.Errorf("the first range is %v", r)
	}
	if id, err := all.Next(ctx, "orders"); err != nil || id != 8 {
		t.Errorf("the next id is %d, %v", id, err)
	}
	if err := all.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if r := fetch(1_000_000); r.First != 9 || r.Count != 1_000_000 {
		t.Errorf("the range after what was given back is %v", r)
	}
	if r := fetch(100); r.Last() != 1_000_050 || r.Count != 42 {
		t.Errorf("the last range is %v", r)
	}
	if _, err := source.Fetch(ctx, "orders", segment.Ask{Step: 1, Above: -1}); !errors.Is(err, segment.ErrExhausted) {
		t.Errorf("after the last there is %v", err)
	}
}

func TestASourceNeedsAStore(t *testing.T) {
	for _, cfg := range []segment.Config{{}, {Source: listed()}, {Source: listed(), Store: memstore.New(nil)}} {
		if _, err := segment.NewSource(cfg); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestSettingsThatASourceIgnoresAreRefused(t *testing.T) {
	for _, cfg := range []segment.Config{{Start: 5}, {Offset: 1}, {Offset: 1, Stride: 2}, {Stride: 2}, {Form: store.Form{Name: "veiled"}}, {Form: store.Form{Keys: map[string]string{"0": "key"}}}, {MustExist: true}} {
		cfg.Source = listed()
		if _, err := segment.New(cfg); err == nil || !strings.Contains(err.Error(), "Config.Source has its own ids") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := segment.New(segment.Config{Source: listed(), Memory: &register.Memory{}}); err == nil || !strings.Contains(err.Error(), "Config.Memory is of the counters of a Store") {
		t.Errorf("a memory: %v", err)
	}
	r := segment.Range{First: 5, Count: 3}
	for id := range r.All() {
		if id != 5 {
			t.Errorf("%d, although the loop has ended", id)
		}
		break
	}
	if got := slices.Collect(r.All()); r.Last() != 7 || !slices.Equal(got, []firn.ID{5, 6, 7}) || !slices.Equal(r.AppendTo(nil), got) {
		t.Errorf("without a stride: %v to %d", got, r.Last())
	}
}

// A source of one's own may grant more ids at once than an int counts on 32 bits.
func TestALongRangeHasNoShortLen(t *testing.T) {
	for count, want := range map[int64]int64{-1: 0, 0: 0, 5: 5, 1<<32 + 5: 1<<32 + 5, 1 << 40: 1 << 40, math.MaxInt64: math.MaxInt64} {
		if got := (segment.Range{First: 1, Count: count, Stride: 1}).Len(); int64(got) != min(want, math.MaxInt) {
			t.Errorf("%d ids have the length %d", count, got)
		}
	}
}
