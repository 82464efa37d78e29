package segment_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

var (
	whole = segment.Stripe{Stride: 1}
	odd   = segment.Stripe{Offset: 1, Stride: 2}
)

func TestACounterIsRaisedAndNeverLowered(t *testing.T) {
	s := memstore.New(nil)
	if _, err := segment.ReadCounter(t.Context(), s, "orders"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a name that is not there: %v", err)
	}
	for _, c := range []struct {
		name   string
		last   firn.ID
		stripe segment.Stripe
		want   uint64
	}{
		{"orders", 2000, whole, 2001},
		{"orders", 5, whole, 2001},
		{"orders", 2000, whole, 2001},
		{"orders", 9000, whole, 9001},
		{"odd", 100, odd, 101},
		{"odd", 101, odd, 103},
		{"odd", 102, odd, 103},
		{"none", -1, whole, 0},
		{"zero", 0, whole, 1},
		{"last", firn.MaxID - 1, whole, 1<<63 - 1},
		{"beyond", firn.MaxID, whole, 1 << 63},
		{"beyond-odd", firn.MaxID, odd, 1<<63 + 1},
	} {
		raised, err := segment.RaiseCounter(t.Context(), s, c.name, c.last, c.stripe)
		if want := (segment.Counter{Next: c.want, Stripe: c.stripe}); err != nil || raised != want {
			t.Errorf("%s raised above %d: %v, %v, want %v", c.name, c.last, raised, err, want)
		}
		if read, err := segment.ReadCounter(t.Context(), s, c.name); err != nil || read != raised {
			t.Errorf("%s is read as %v, %v, not %v", c.name, read, err, raised)
		}
	}
	names, err := segment.New(segment.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := names.Next(t.Context(), "orders"); err != nil || id != 9001 {
		t.Errorf("the first id is %d, %v", id, err)
	}
	if err := names.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestGivingARangeBackNeverLowersARaisedCounter(t *testing.T) {
	t.Run("by another process", func(t *testing.T) {
		w := newWorld(t, 1)
		early := w.open(steps(10_000, 10_000))
		w.mustTake(w.name(early, "orders"), 10)
		w.stage.settle()
		raised, err := segment.RaiseCounter(t.Context(), w.mem, "orders", 5000, whole)
		if err != nil || raised.Next != 10_001 {
			t.Errorf("raised to %d, %v; it was further already", raised.Next, err)
		}
		w.close(early)
		if id, err := w.orders(steps(100, 100)).Next(t.Context()); err != nil || id <= 5000 {
			t.Errorf("the first id of a new process is %d, %v", id, err)
		}
	})
	t.Run("by one that has fetched again since, without a gap", func(t *testing.T) {
		w := newWorld(t, 1)
		early := w.open(steps(100, 100))
		n := w.name(early, "orders")
		w.mustTake(n, 10)
		w.stage.settle()
		if _, err := segment.RaiseCounter(t.Context(), w.mem, "orders", 50, whole); err != nil {
			t.Fatal(err)
		}
		w.mustTake(n, 15) // it goes on with what it holds, and fetches ahead
		w.stage.settle()
		if before, err := segment.ReadCounter(t.Context(), w.mem, "orders"); err != nil || before.Next != 201 {
			t.Fatalf("the next range was not fetched: %+v, %v", before, err)
		}
		w.close(early)
		if after, err := segment.ReadCounter(t.Context(), w.mem, "orders"); err != nil || after.Next != 101 {
			t.Errorf("it stood at 101 when it was raised, and is given back to %d, %v", after.Next, err)
		}
	})
	for way, take := range map[string]func(w *world, n *segment.Namespace) firn.ID{
		"by one that held several ranges, and has fetched again since": func(w *world, n *segment.Namespace) firn.ID { return w.mustTake(n, 11) },
		"by one that has joined ranges from before and after": func(w *world, n *segment.Namespace) firn.ID {
			w.mustTake(n, 11)
			w.stage.settle()
			return w.row(n, 150).Last()
		},
	} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, 1)
			early := w.open(steps(100, 100), func(c *segment.Config) { c.Ahead = 1 })
			n := w.name(early, "orders")
			w.mustTake(n, 100)
			w.mustTake(n, 100)
			w.mustTake(n, 90) // waits, so that more is fetched ahead
			w.stage.settle()
			raised, err := segment.RaiseCounter(t.Context(), w.mem, "orders", 350, whole)
			if held := n.State(); err != nil || held.Left < 200 || raised.Next != 291+uint64(held.Left) {
				t.Fatalf("%+v is held when the counter is raised: %+v, %v", held, raised, err)
			}
			last := take(w, n)
			w.stage.settle()
			if before, err := segment.ReadCounter(t.Context(), w.mem, "orders"); err != nil || before.Next <= raised.Next {
				t.Fatalf("nothing was fetched since: %+v, %v", before, err)
			}
			w.close(early)
			want := max(raised.Next, uint64(last)+1)
			if after, err := segment.ReadCounter(t.Context(), w.mem, "orders"); err != nil || after.Next != want {
				t.Errorf("it stood at %d when it was raised, and is given back to %d, %v", raised.Next, after.Next, err)
			}
		})
	}
	t.Run("by one that is further itself", func(t *testing.T) {
		w := newWorld(t, 1)
		n := w.orders(steps(100, 100), func(c *segment.Config) { c.Start = 5000 })
		w.mustTake(n, 1)
		w.stage.settle()
		w.mem.Restore(nil)
		early := w.open(steps(10_000, 10_000)) // before the counter is raised, which is a mistake
		w.mustTake(w.name(early, "orders"), 10)
		w.stage.settle()
		if err := n.Raise(t.Context(), 5001); err != nil {
			t.Fatal(err)
		}
		w.close(early)
		if id, err := w.orders(steps(100, 100)).Next(t.Context()); err != nil || id <= 5001 {
			t.Errorf("the first id of a new process is %d, %v", id, err)
		}
	})
}

// What was read may be a write that the store is about to lose: only a write that it
// confirms says where a counter is.
func TestACounterThatIsFurtherIsWrittenAsItIs(t *testing.T) {
	mem := memstore.New(nil)
	s := storetest.NewFaulty(mem)
	if _, err := segment.RaiseCounter(t.Context(), s, "orders", 5000, whole); err != nil {
		t.Fatal(err)
	}
	for _, last := range []firn.ID{5000, -1, 0, 4999} {
		now, err := segment.RaiseCounter(t.Context(), s, "orders", last, whole)
		if err != nil || now.Next != 5001 {
			t.Errorf("raised above %d: %v, %v", last, now, err)
		}
	}
	if n := s.Counts().CompareAndSwap; n != 5 {
		t.Errorf("%d writes, want 5", n)
	}
	s.Script = unconfirmed
	for range 3 {
		if now, err := segment.RaiseCounter(t.Context(), s, "orders", 5000, whole); err == nil || now != (segment.Counter{}) {
			t.Errorf("nothing was confirmed: %v, %v", now, err)
		}
	}
}

func TestACounterThatCannotBeRaisedStays(t *testing.T) {
	s := memstore.New(nil)
	if _, err := s.CompareAndSwap(t.Context(), register.CounterKey("foreign"), 0, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := segment.RaiseCounter(t.Context(), s, "odd", 1, odd); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		last   firn.ID
		stripe segment.Stripe
		want   error
	}{
		{"a b", 1, whole, firn.ErrSyntax},
		{"orders", -2, whole, firn.ErrRange},
		{"orders", 1, segment.Stripe{Offset: 2, Stride: 2}, firn.ErrRange},
		{"odd", 1000, whole, segment.ErrStripe},
		{"foreign", 1, whole, store.ErrForeign},
	} {
		if now, err := segment.RaiseCounter(t.Context(), s, c.name, c.last, c.stripe); !errors.Is(err, c.want) || now != (segment.Counter{}) {
			t.Errorf("%q above %d: %v, %v, want %v", c.name, c.last, now, err, c.want)
		}
	}
	if now, err := segment.ReadCounter(t.Context(), s, "odd"); err != nil || now.Next != 3 {
		t.Errorf("%v, %v", now, err)
	}
}

func TestACounterIsRaisedThoughAnswersAreLost(t *testing.T) {
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate} {
		s := storetest.NewFaulty(memstore.New(nil))
		s.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.N <= 3 {
				return outcome
			}
			return storetest.Pass
		}
		if now, err := segment.RaiseCounter(t.Context(), s, "orders", 500, whole); err != nil || now.Next != 501 {
			t.Errorf("%v: %v, %v", outcome, now, err)
		}
		if now, err := segment.ReadCounter(t.Context(), s, "orders"); err != nil || now.Next != 501 {
			t.Errorf("%v: %v, %v", outcome, now, err)
		}
	}
	s := storetest.NewFaulty(memstore.New(nil))
	s.Script = func(storetest.Call) storetest.Outcome { return storetest.Refuse }
	if _, err := segment.RaiseCounter(t.Context(), s, "orders", 500, whole); !errors.Is(err, store.ErrRefused) {
		t.Errorf("refused: %v", err)
	}
	s.SetDown(true)
	if _, err := segment.RaiseCounter(t.Context(), s, "orders", 500, whole); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
	if n := s.Counts().CompareAndSwap; n > 1 {
		t.Errorf("%d writes", n)
	}
}

// The greatest number a record may have is no id any more.
// overtaken lets another write before each write, and then calls a function with how often that was.
type overtaken struct {
	store.Store
	times int
	then  func(times int)
}

func (s *overtaken) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if _, err := s.Store.CompareAndSwap(ctx, key, old, value); err != nil {
		return store.Entry{}, err
	}
	s.times++
	s.then(s.times)
	_, err := s.Store.CompareAndSwap(context.WithoutCancel(ctx), key, old, value)
	return store.Entry{}, err
}

// A program that canceled a call must not take the store for unavailable.
func TestACallThatIsCanceledBetweenConflictsSaysSo(t *testing.T) {
	why := errors.New("the caller left")
	for _, at := range []int{1, 65, 66} { // after the first conflict, after the last one, never
		for what, call := range map[string]func(context.Context, store.Store) error{
			"RaiseCounter": func(ctx context.Context, s store.Store) error {
				_, err := segment.RaiseCounter(ctx, s, "orders", 500, whole)
				return err
			},
			"Raise": func(ctx context.Context, s store.Store) error {
				all, err := segment.New(segment.Config{Store: s, Random: func() uint64 { return 0 }}) // 64 waits within the time-out
				if err != nil {
					return err
				}
				n, err := all.Namespace("orders")
				if err != nil {
					return err
				}
				return n.Raise(ctx, 500)
			},
			"Fetch": func(ctx context.Context, s store.Store) error {
				_, err := source(t, s, nil).Fetch(ctx, "orders", segment.Ask{Step: 5, Above: -1})
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				s := &overtaken{memstore.New(nil), 0, func(times int) {
					if times == at {
						cancel(why)
					}
				}}
				err := call(ctx, s)
				canceled := at <= 65
				if errors.Is(err, context.Canceled) != canceled || errors.Is(err, why) != canceled || errors.Is(err, store.ErrUnavailable) == canceled || !store.Unapplied(err) {
					t.Errorf("%s, canceled at conflict %d of %d: %v", what, at, s.times, err)
				}
				cancel(nil)
			})
		}
	}
}

func TestACounterAboveTheLastIDOfAllIsExhausted(t *testing.T) {
	s := memstore.New(nil)
	const stride = 1 << 20
	cfg := segment.Config{Store: s, Start: firn.MaxID, Offset: stride - 1, Stride: stride}
	for range 2 {
		names, err := segment.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		id, err := names.Next(t.Context(), "orders")
		if read, _ := segment.ReadCounter(t.Context(), s, "orders"); read.Next != 1<<63-1+stride {
			t.Errorf("after %d, %v it stands at %d", id, err, read.Next)
		}
		if cfg.Start == firn.MaxID && id != firn.MaxID || cfg.Start == 1 && !errors.Is(err, segment.ErrExhausted) {
			t.Errorf("%d, %v", id, err)
		}
		cfg.Start = 1
	}
}

func TestACounterThatCannotBeReadIsNotNew(t *testing.T) {
	s := storetest.NewFaulty(memstore.New(nil))
	s.SetDown(true)
	if c, err := segment.ReadCounter(t.Context(), s, "orders"); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) {
		t.Error(c, err)
	}
	if c, err := segment.ReadCounter(t.Context(), s, "or/ders"); !errors.Is(err, firn.ErrSyntax) {
		t.Error(c, err)
	}
}
