package segment_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

func TestIDsBeginAtTheStartAndLeaveNoGap(t *testing.T) {
	for _, stripe := range []segment.Stripe{{Offset: 0, Stride: 1}, {Offset: 2, Stride: 5}, {Offset: 0, Stride: 7}} {
		w := newWorld(t, 1)
		n := w.orders(steps(10, 80), func(c *segment.Config) { c.Offset, c.Stride = stripe.Offset, stripe.Stride })
		want := firn.ID(stripe.Offset)
		if want < 1 {
			want += firn.ID(stripe.Stride)
		}
		for range 1000 {
			id, err := n.Next(t.Context())
			if err != nil || id != want {
				t.Fatalf("%v: id %d, %v, want %d", stripe, id, err, want)
			}
			want += firn.ID(stripe.Stride)
			w.stage.now += time.Second
		}
		if s := n.State(); s.Issued != 1000 {
			t.Errorf("%+v", s)
		}
	}
}

func TestTheNextRangeIsThereBeforeTheCurrentOneEnds(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders()
	for range 50_000 {
		w.mustTake(n, 10)
		w.stage.settle() // fetching keeps pace
		w.stage.now += time.Second
	}
	if s := n.State(); s.Waits != 1 || s.Failures != 0 {
		t.Errorf("callers waited %d times, want only for the first range: %+v", s.Waits, s)
	}
}

func TestTheStepFollowsTheDemandBothWays(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders()
	demand := func(perSecond int, d time.Duration) segment.State {
		for end := w.stage.now + d; w.stage.now < end; {
			for left := perSecond * 10; left > 0; {
				r, err := n.Take(context.Background(), left)
				if err != nil {
					t.Fatal(err)
				}
				left -= r.Len()
			}
			w.stage.now += 10 * time.Second
			w.stage.settle()
		}
		return n.State()
	}
	for _, c := range []struct {
		perSecond   int
		least, most int64
	}{
		{100, 85_000, 95_000}, // 900 s
		{5, 4_400, 4_600},
		{20, 17_000, 19_000},
		{5_000, 1_000_000, 1_000_000}, // the greatest step
		{1, 1_000, 1_000},             // the least
	} {
		s := demand(c.perSecond, 50*time.Hour*max(1, time.Duration(20/c.perSecond)))
		if s.Step < c.least || s.Step > c.most {
			t.Errorf("at %d a second the step is %d, want %d to %d", c.perSecond, s.Step, c.least, c.most)
		}
		if s.Rate < 0.9*float64(c.perSecond) || s.Rate > 1.1*float64(c.perSecond) {
			t.Errorf("at %d a second the rate is said to be %.1f", c.perSecond, s.Rate)
		}
		if lasts := time.Duration(float64(s.Left) / float64(c.perSecond) * float64(time.Second)); s.Lasts < lasts*9/10 || s.Lasts > lasts*11/10 {
			t.Errorf("at %d a second %d ids last for %v, %v are said", c.perSecond, s.Left, lasts, s.Lasts)
		}
		if s.Waits > 1+20 {
			t.Errorf("callers waited %d times", s.Waits)
		}
	}
}

func TestABurstFasterThanFetchingGrowsTheChainUntilItIsOver(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(1000, 1000))
	for range 20 {
		w.mustTake(n, 1000) // nothing is fetched but while a caller waits
		w.stage.now += time.Millisecond
	}
	w.stage.settle()
	s := n.State()
	if s.Depth != 8 || s.Ranges < 7 {
		t.Fatalf("after a burst: %+v", s)
	}
	waits := s.Waits
	for range 4 { // the same burst finds what it needs
		w.mustTake(n, 1000)
	}
	if s := n.State(); s.Waits != waits {
		t.Errorf("a burst within the chain waited: %+v", s)
	}
	for range 30_000 {
		w.mustTake(n, 1)
		w.stage.now += time.Second
		w.stage.settle()
	}
	if s := n.State(); s.Depth != 1 || s.Ranges > 1 {
		t.Errorf("long after the burst: %+v", s)
	}
}

// All callers that wait for one fetch count as one burst.
func TestManyCallersThatWaitForOneFetchGrowTheChainOnce(t *testing.T) {
	w := newWorld(t, 1)
	var n *segment.Namespace
	next := firn.ID(1)
	n = w.orders(func(c *segment.Config) {
		c.Ahead = 0.01
		c.Source = sourceFunc(func(_ context.Context, _ string, _ segment.Ask) (segment.Range, error) {
			if next == 11 {
				for range 5 {
					if _, err := n.Next(t.Context()); !errors.Is(err, errStuck) {
						t.Errorf("during the fetch: %v", err)
					}
				}
			}
			r := segment.Range{First: next, Count: 10}
			next += 10
			return r, nil
		})
	})
	w.mustTake(n, 10)
	w.mustTake(n, 1)
	if s := n.State(); s.Depth != 2 {
		t.Errorf("%+v", s)
	}
}

// TestARaiseInAStoreThatForgotRaisesItAboveAllHeldRanges: else another process would be granted
// the last id that is held here.
func TestARaiseInAStoreThatForgotRaisesItAboveAllHeldRanges(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(100, 100))
	w.mustTake(n, 10)
	w.stage.settle()
	w.mem.Restore(nil)
	if err := n.Raise(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	other := w.orders(steps(100, 100))
	w.mustTake(other, 100)
	w.mustTake(n, 100)
}

// A raise during a fetch drops what the fetch brings only if that lies below.
func TestARangeThatArrivesAboveARaiseIsKept(t *testing.T) {
	w := newWorld(t, 1)
	var n *segment.Namespace
	fetches := 0
	n = w.orders(func(c *segment.Config) {
		c.Ahead = 1
		c.Source = sourceFunc(func(context.Context, string, segment.Ask) (segment.Range, error) {
			if fetches++; fetches != 2 {
				return segment.Range{First: firn.ID(1000*fetches - 999), Count: 10}, nil
			}
			if err := n.Raise(t.Context(), 500); !errors.Is(err, errStuck) { // it waits for this fetch
				t.Error(err)
			}
			return segment.Range{First: 501, Count: 10}, nil
		})
	})
	w.mustTake(n, 1)
	w.stage.settle()
	if id := w.mustTake(n, 1); id != 501 || n.State().Dropped != 0 {
		t.Errorf("%d, %+v", id, n.State())
	}
}

// An outage is logged once, and so is its end.
func TestAnOutageAndItsEndAreLoggedOncePerName(t *testing.T) {
	w := newWorld(t, 1)
	var log strings.Builder
	n := w.orders(func(c *segment.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	w.mustTake(n, 1)
	if text := log.String(); !strings.HasSuffix(text, `level=INFO msg="a counter is new in this store" name=orders first=1`+"\n") {
		t.Errorf("the log has\n%s", text)
	}
	log.Reset()
	for _, calls := range []int{3, 1} {
		w.store.SetDown(true)
		for range calls {
			if _, err := n.Take(t.Context(), 1<<20); err == nil {
				_, err = w.take(n, 1<<20)
				if err == nil {
					t.Fatal("no error")
				}
			}
			w.stage.now += time.Second
		}
		w.store.SetDown(false)
		w.mustTake(n, 1)
	}
	var levels []string
	for line := range strings.Lines(log.String()) {
		_, rest, _ := strings.Cut(line, "level=")
		level, _, _ := strings.Cut(rest, " ")
		levels = append(levels, level)
	}
	if got := strings.Join(levels, " "); got != "WARN INFO WARN INFO" {
		t.Errorf("%s:\n%s", got, &log)
	}
}

func TestUnusedIDsAreGivenBack(t *testing.T) {
	w := newWorld(t, 1)
	for i := range 20 {
		s := w.open(steps(100, 1000), func(c *segment.Config) { c.Ahead = 1 })
		n := w.name(s, "orders")
		if last := w.mustTake(n, 37+i); last != firn.ID(len(w.seen["orders"])) {
			t.Fatalf("after %d ids the last is %d", len(w.seen["orders"]), last)
		}
		if i%2 == 0 {
			w.stage.settle() // a range fetched ahead is given back with the rest of the first
		}
		w.close(s)
		w.close(s)
		if _, err := n.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Fatalf("after Close: %v", err)
		}
		if _, err := s.Namespace("orders2"); !errors.Is(err, firn.ErrClosed) {
			t.Fatalf("after Close: %v", err)
		}
	}
}

func TestOnlyTheNewestRangesAreGivenBack(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.open(steps(100, 100)), w.open(steps(100, 100))
	w.mustTake(w.name(a, "orders"), 10) // 1 to 100
	w.mustTake(w.name(b, "orders"), 10) // 101 to 200
	w.close(a)
	if last := w.mustTake(w.orders(steps(100, 100)), 1); last != 201 {
		t.Errorf("%d was issued next, want 201: what another has gone on from stays as it is", last)
	}
	w.close(b)
	// The counter stands at 301. Of ranges that are not in a row the last goes back.
	c := w.open(steps(100, 100))
	n := w.name(c, "orders")
	w.stage.settle()
	w.mustTake(n, 1) // 301 to 400
	w.mustTake(n, 30)
	ahead := w.stage.tasks
	w.stage.tasks = nil
	d := w.orders(steps(100, 100))
	w.mustTake(d, 1) // 401 to 500
	w.stage.tasks = ahead
	w.stage.settle() // 501 to 600
	if s := n.State(); s.Ranges != 1 {
		t.Fatalf("%+v", s)
	}
	w.close(c)
	if last := w.mustTake(w.orders(steps(100, 100)), 1); last != 501 {
		t.Errorf("%d was issued next, want 501", last)
	}
}

func TestAFailureToGiveBackIsHarmless(t *testing.T) {
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate, storetest.Refuse} {
		w := newWorld(t, 1)
		s := w.open(steps(100, 100))
		w.mustTake(w.name(s, "orders"), 10)
		w.mustTake(w.name(s, "users"), 10)
		w.store.Script = func(storetest.Call) storetest.Outcome { return outcome }
		if err := s.Close(context.Background()); err == nil {
			t.Errorf("%v: no error", outcome)
		}
		w.store.Script = nil
		for range 5 {
			w.mustTake(w.orders(steps(100, 100)), 150)
		}
	}
}

func TestARangeWhoseAnswerWasLostIsTakenAgain(t *testing.T) {
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate} {
		w := newWorld(t, 1)
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.N%3 == 1 {
				return outcome
			}
			return storetest.Pass
		}
		n := w.orders(steps(100, 100))
		if last := w.mustTake(n, 1000); last != 1000 {
			t.Errorf("%v: %d ids up to %d, want no gap", outcome, 1000, last)
		}
		if s := n.State(); s.Failures != 0 {
			t.Errorf("%v: %+v", outcome, s)
		}
	}
}

func TestARangeThatWasTakenAgainIsGivenBackAsAnyOther(t *testing.T) {
	w := newWorld(t, 1)
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && c.N == 1 {
			return storetest.FailApplied
		}
		return storetest.Pass
	}
	s := w.open()
	w.mustTake(w.name(s, "orders"), 7)
	w.close(s)
	if id := w.mustTake(w.orders(), 1); id != 8 {
		t.Errorf("%d was issued next, want 8", id)
	}
}

func TestAFetchOutlastsAStormOfConflicts(t *testing.T) {
	w := newWorld(t, 1)
	rival := w.orders(func(c *segment.Config) {
		c.Store = w.mem
		c.MinStep, c.MaxStep = 10, 10
	})
	storm := 30
	n := w.orders(func(c *segment.Config) {
		c.Store = before{w.mem, func() {
			if storm > 0 {
				storm--
				w.mustTake(rival, 10)
				w.stage.settle()
			}
		}}
	})
	w.mustTake(n, 10)
	if w.stage.now == 0 {
		t.Error("it never waited between tries")
	}
	storm = math.MaxInt
	started := w.stage.now
	_, err := w.take(n, 2000)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "quicker each time") {
		t.Errorf("in an endless storm: %v", err)
	}
	if took := w.stage.now - started; took > time.Minute {
		t.Errorf("it gave up after %v", took)
	}
	storm = 0
	w.stage.now += time.Second
	w.mustTake(n, 2000)
}

func TestAnOutageIsSurvivedAsLongAsIDsLast(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders()
	for range 10_000 {
		w.mustTake(n, 100)
		w.stage.now += time.Second
		w.stage.settle()
	}
	w.store.SetDown(true)
	promised := n.State().Lasts
	if promised < 12*time.Minute {
		t.Errorf("ids are said to last for %v, want at least four fifths of a quarter of an hour", promised)
	}
	began := w.stage.now
	var err error
	for err == nil {
		_, err = w.take(n, 100)
		w.stage.now += time.Second
		w.stage.settle()
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("at the end: %v", err)
	}
	if lasted := w.stage.now - began; lasted < promised*95/100 || lasted > promised*105/100 {
		t.Errorf("ids lasted for %v, %v were promised", lasted, promised)
	}
	s := n.State()
	if s.Left != 0 || s.Err == nil || s.Failures == 0 || s.Failures > 500 {
		t.Errorf("in the outage: %+v", s)
	}
	w.store.SetDown(false)
	w.stage.now += time.Second
	w.mustTake(n, 1000)
	if s := n.State(); s.Err != nil {
		t.Errorf("after the outage: %+v", s)
	}
}

func TestAShortOutageEndsBeforeAnyCallerWaits(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders()
	for i := range 20_000 {
		w.store.SetDown(i%3000 > 2500) // 500 s every 3,000 s
		if _, err := w.take(n, 50); err != nil {
			t.Fatalf("after %v: %v, %+v", w.stage.now, err, n.State())
		}
		w.stage.now += time.Second
		w.stage.settle()
	}
	if s := n.State(); s.Waits != 1 {
		t.Errorf("%+v", s)
	}
}

func TestStripesLetIndependentStoresServeOneName(t *testing.T) {
	seen := map[firn.ID]int64{}
	for offset := range int64(3) {
		w := newWorld(t, uint64(offset))
		n := w.orders(steps(10, 100), func(c *segment.Config) { c.Offset, c.Stride = offset, 3 })
		for range 50 {
			w.mustTake(n, 7)
		}
		for id := range w.seen["orders"] {
			if other, ok := seen[id]; ok {
				t.Fatalf("id %d of offsets %d and %d", id, other, offset)
			}
			seen[id] = offset
		}
		_, err := w.take(w.orders(), 1)
		var stripe *segment.StripeError
		if !errors.As(err, &stripe) || !errors.Is(err, segment.ErrStripe) || stripe.Have.Offset != offset {
			t.Errorf("another stripe: %v", err)
		}
	}
}

func TestNoIDIsIssuedAfterTheLast(t *testing.T) {
	for _, c := range []struct {
		start, last    firn.ID
		offset, stride int64
		want           int
	}{
		{firn.MaxID - 99, firn.MaxID, 0, 1, 100},
		{firn.MaxID, firn.MaxID, 0, 1, 1},
		{firn.MaxID - 99, firn.MaxID, 7, 10, 10},
		{firn.MaxID - 3, firn.MaxID, 0, 1 << 20, 0},
		{firn.MaxID - 1<<30, firn.MaxID, 5, 1 << 20, 1024},
		{1, 53, 0, 1, 53},
		{1, 1, 0, 1, 1},
	} {
		for _, step := range []int64{1, 7, 1000, 1 << 40} {
			w := newWorld(t, uint64(step))
			change := func(cfg *segment.Config) {
				cfg.Start, cfg.Max, cfg.Offset, cfg.Stride = c.start, c.last, c.offset, c.stride
			}
			n := w.orders(steps(step, step), change)
			var err error
			for range 100 {
				if _, err = w.take(n, 17); err != nil {
					break
				}
			}
			var exhausted *segment.ExhaustedError
			for range 3 {
				if !errors.As(err, &exhausted) || !errors.Is(err, segment.ErrExhausted) || exhausted.Max != c.last || exhausted.Name != "orders" {
					t.Fatalf("%+v step %d: %v", c, step, err)
				}
				w.stage.now += time.Second
				_, err = w.take(n, 1<<21)
			}
			if got := len(w.seen["orders"]); got != c.want && c.want < 1024 {
				t.Errorf("%+v step %d: %d ids", c, step, got)
			}
			if _, err := w.take(w.orders(steps(step, step), change), 1); !errors.Is(err, segment.ErrExhausted) {
				t.Errorf("%+v step %d: another process: %v", c, step, err)
			}
		}
	}
}

func TestAStoreThatWasSetBackDoesNotSetThisProcessBack(t *testing.T) {
	w := newWorld(t, 1)
	var log strings.Builder
	n := w.orders(steps(100, 100), func(c *segment.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.mustTake(n, 150)
	old := w.mem.Snapshot()
	w.mustTake(n, 500)
	for i := range 10 {
		if i%2 == 0 {
			w.mem.Restore(old)
		} else {
			w.mem.Restore(nil)
		}
		w.mustTake(n, 430) // checks that each id is issued once and in order
		w.stage.settle()
	}
	for _, words := range []string{"was set back", "next=201 ", "next=0 "} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("%q was not logged:\n%s", words, &log)
		}
	}
	if n := strings.Count(log.String(), "is new in this store"); n != 1 {
		t.Errorf("%d times it is said to be new: %s", n, &log)
	}
	if n, logged := n.State().SetBacks, strings.Count(log.String(), "was set back"); n == 0 || n != int64(logged) {
		t.Errorf("%d are counted, and %d logged", n, logged)
	}
	// One that comes later goes on above, since the counter was raised.
	w.mustTake(w.orders(), 1)
	// And Start raises it for all.
	w.mem.Restore(nil)
	id, err := w.orders(func(c *segment.Config) { c.Start = 50_000 }).Next(t.Context())
	if err != nil || id != 50_000 {
		t.Errorf("%d, %v", id, err)
	}
	if id, err := w.orders().Next(t.Context()); err != nil || id != 51_000 {
		t.Errorf("%d, %v", id, err)
	}
}

func TestARaiseOfANewCounterBeginsAtTheStart(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(10, 10), func(c *segment.Config) { c.Start = 5000 })
	if err := n.Raise(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if s := n.State(); s.Left == 0 {
		t.Errorf("after a raise there are no ids: %+v", s)
	}
	if at, err := segment.ReadCounter(t.Context(), w.store, "orders"); err != nil || at.Next != 5010 {
		t.Errorf("%+v, %v", at, err)
	}
}

func TestNothingIsRaisedAfterClose(t *testing.T) {
	over := memstore.New(nil)
	s, err := segment.New(segment.Config{Store: over})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Namespace("orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Raise(t.Context(), 7); !errors.Is(err, firn.ErrClosed) {
		t.Error(err)
	}
	if at, err := segment.ReadCounter(t.Context(), over, "orders"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%+v, %v", at, err)
	}
}

func TestRaiseMovesOnAndOnlyForward(t *testing.T) {
	w := newWorld(t, 1)
	s := w.open(steps(100, 100))
	n := w.name(s, "orders")
	ctx := context.Background()
	w.mustTake(n, 30)
	for _, c := range []struct{ last, next firn.ID }{
		{-1, 31},
		{20, 32}, // behind already
		{40, 41}, // within the range in use: that is dropped, and the next begins above
		{5000, 5001},
		{4000, 5002},
	} {
		if err := n.Raise(ctx, c.last); err != nil {
			t.Fatal(err)
		}
		if last := w.mustTake(n, 1); last < c.next || last > c.next+150 {
			t.Errorf("raised above %d, the next is %d", c.last, last)
		}
	}
	if err := n.Raise(ctx, -2); !errors.Is(err, firn.ErrRange) {
		t.Error(err)
	}
	if err := n.Raise(ctx, firn.MaxID-1); err != nil {
		t.Error(err)
	}
	if id := w.mustTake(n, 1); id != firn.MaxID {
		t.Error(id)
	}
	for _, other := range []*segment.Namespace{n, w.name(w.open(), "unused")} {
		if err := other.Raise(ctx, firn.MaxID); err != nil {
			t.Error(err)
		}
		if id, err := other.Next(ctx); !errors.Is(err, segment.ErrExhausted) {
			t.Error(id, err)
		}
	}
}

// A raise to the last id is in the store, though no range can be fetched after it.
func TestARaiseToTheLastIDIsInTheStore(t *testing.T) {
	mem := memstore.New(nil)
	_, n := orders(t, segment.Config{Store: mem, Max: 100})
	if err := n.Raise(t.Context(), 100); err != nil {
		t.Error(err)
	}
	if c, err := segment.ReadCounter(t.Context(), mem, "orders"); err != nil || c.Next != 101 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Close says how many names have ids that stay unused, and why.
func TestCloseSaysWhoseIDsStayUnused(t *testing.T) {
	var log bytes.Buffer
	faulty := storetest.NewFaulty(memstore.New(nil))
	all, err := segment.New(segment.Config{Store: faulty, Fetches: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := all.Next(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	faulty.Script = func(c storetest.Call) storetest.Outcome {
		if c.Key == register.CounterKey("b") {
			return storetest.Refuse
		}
		return storetest.Pass
	}
	if err := all.Close(t.Context()); !errors.Is(err, store.ErrRefused) || !strings.HasSuffix(err.Error(), "; unused ids of 1 names stay unused") {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "unused ids of some names could not be given back") || !strings.Contains(text, "names=1 ") {
		t.Error(text)
	}
}

// A program that changes its own map later changes no settings.
func TestKeysOfAFormAreThoseOfTheOpening(t *testing.T) {
	mem := memstore.New(nil)
	keys := map[string]string{"0": "one"}
	_, n := orders(t, segment.Config{Store: mem, Form: store.Form{Name: "veil 40", Keys: keys}})
	keys["0"] = "another"
	if _, err := n.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err := mem.Get(t.Context(), register.CounterKey("orders")); err != nil || !strings.Contains(string(e.Value), `"0":"one"`) {
		t.Errorf("%s, %v", e.Value, err)
	}
}

// hanging answers no read before its caller gives up.
type hanging struct{ store.Store }

func (hanging) Get(ctx context.Context, _ string) (store.Entry, error) {
	<-ctx.Done()
	return store.Entry{}, context.Cause(ctx)
}

// The deadline of a caller is not taken for a store that is slow.
func TestADeadlineOfTheCallerStaysOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := orders(t, segment.Config{Store: hanging{memstore.New(nil)}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Raise(ctx, 5); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
	})
}

// Close says what it did not wait for.
func TestACloseThatEndsBeforeAFetchSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, n := orders(t, segment.Config{Store: hanging{memstore.New(nil)}})
		failed := make(chan error, 1)
		go func() {
			_, err := n.Next(t.Context())
			failed <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := all.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait for fetches under way, whose ids stay unused") {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, firn.ErrClosed) {
			t.Error(err)
		}
	})
}

// The greatest id of a table is what its keys say, in both packages.
func TestRaisedToTheLastIDOfATableTheNextIsGreater(t *testing.T) {
	for name, raise := range map[string]func(w *world) error{
		"by a process": func(w *world) error { return w.orders().Raise(context.Background(), 100) },
		"by hand": func(w *world) error {
			_, err := segment.RaiseCounter(context.Background(), w.mem, "orders", 100, whole)
			return err
		},
	} {
		w := newWorld(t, 1)
		if err := raise(w); err != nil {
			t.Fatal(name, err)
		}
		if id := w.mustTake(w.orders(), 1); id <= 100 {
			t.Errorf("raised %s to the last id 100, the next is %d", name, id)
		}
	}
	w := newWorld(t, 1)
	n := w.orders()
	if err := n.Raise(context.Background(), 100); err != nil {
		t.Fatal(err)
	}
	if id := w.mustTake(n, 1); id != 101 {
		t.Errorf("raised to the last id 100, the next is %d", id)
	}
}

func TestARangeFetchedBeforeARaiseIsNotUsed(t *testing.T) {
	w := newWorld(t, 1)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var n *segment.Namespace
	fetches := 0
	n = w.orders(func(c *segment.Config) {
		c.Store = before{w.mem, func() {
			if fetches++; fetches == 4 { // the write of the second range, which has been decided on
				if err := n.Raise(ended, 9000); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		}}
	})
	w.mustTake(n, 1)
	w.mustTake(n, 500) // past the mark
	w.stage.settle()
	if id := w.mustTake(n, 1); id <= 9000 {
		t.Errorf("%d after raising to 9000", id)
	}
	if s := n.State(); s.Dropped != 1 || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	if id := w.mustTake(w.orders(), 1); id <= 9000 {
		t.Errorf("%d elsewhere after raising to 9000", id)
	}
}

func TestForeignContentIsRefusedAndLeftAsItIs(t *testing.T) {
	for _, content := range []string{
		``, `null`, `[]`, `7`, `{}`, `{"fence":"12"}`, `{"next":1001,"stride":1}`,
		`{"next":"1001","offset":0,"stride":0}`, `{"next":"1001","offset":1,"stride":1}`, `{"next":"1001","offset":-1,"stride":5}`,
		`{"next":"1001","offset":2,"stride":5}`, `{"next":"-1","stride":1}`, `{"next":"18446744073709551615","stride":1}`,
		`{"next":"1001","offset":0,"stride":2097152}`, `{"next":" 1","stride":1}`, `{"next":"1e3","stride":1}`,
		`{"kind":7,"next":"1001","stride":1}`, `{"form":"\u0007","next":"1001","stride":1}`,
	} {
		w := newWorld(t, 1)
		if _, err := w.mem.CompareAndSwap(context.Background(), register.CounterKey("orders"), 0, []byte(content)); err != nil {
			t.Fatal(err)
		}
		_, err := w.take(w.orders(), 1)
		if !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), "firn/counter:orders") {
			t.Errorf("%s: %v", content, err)
		}
		if strings.Contains(content, "18446744073709551615") && !strings.Contains(err.Error(), "next id 18446744073709551615 is out of range: 0 to 9223372036855824383 are allowed") {
			t.Errorf("%s: %v", content, err)
		}
		if e, err := w.mem.Get(context.Background(), register.CounterKey("orders")); err != nil || string(e.Value) != content {
			t.Errorf("%s became %s, %v", content, e.Value, err)
		}
	}
}

func TestMistakesAreNamedAllAtOnce(t *testing.T) {
	_, err := segment.New(segment.Config{
		MinStep: -1, Target: -time.Second, Ahead: math.NaN(), Chain: 65, Start: 7, Max: 6, Offset: 4, Stride: 4, Fetches: -1, MaxNames: -1,
	})
	for _, word := range []string{"Source", "least step", "target", "ahead", "chain", "fetches", "names", "first id", "offset"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not named in: %v", word, err)
		}
	}
	w := newWorld(t, 1)
	for _, change := range []func(*segment.Config){
		func(c *segment.Config) { c.MinStep, c.MaxStep = 10, 9 },
		func(c *segment.Config) { c.MaxStep = -5 },
		func(c *segment.Config) { c.MinStep = 1 << 41 },
		func(c *segment.Config) { c.Stride = 1<<20 + 1 },
		func(c *segment.Config) { c.Stride = -1 },
		func(c *segment.Config) { c.Start = -1 },
		func(c *segment.Config) { c.Max = -1 },
		func(c *segment.Config) { c.Ahead = 1.5 },
	} {
		cfg := segment.Config{Store: w.store}
		change(&cfg)
		if _, err := segment.New(cfg); !errors.Is(err, firn.ErrRange) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, change := range []func(*segment.Config){
		func(c *segment.Config) { c.MinStep = 5_000_000 },
		func(c *segment.Config) { c.MaxStep = 10 },
	} {
		cfg := segment.Config{Store: w.store}
		change(&cfg)
		if _, err := segment.New(cfg); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestNamesFollowTheRuleOfPools(t *testing.T) {
	w := newWorld(t, 1)
	s := w.open(func(c *segment.Config) { c.MaxNames = 3 })
	for _, name := range []string{"", strings.Repeat("x", 65), "a/b", "a b", "a:b", "ä", "\x00", "a\n"} {
		if id, err := s.Next(context.Background(), name); !errors.Is(err, firn.ErrSyntax) || id != 0 {
			t.Errorf("name %q: %d, %v", name, id, err)
		}
	}
	for _, name := range []string{"A.b-c_9", strings.Repeat("x", 64), "slot"} {
		if id, err := s.Next(context.Background(), name); err != nil || id != 1 {
			t.Errorf("name %q: %d, %v", name, id, err)
		}
	}
	if _, err := s.Namespace("fourth"); !errors.Is(err, firn.ErrRange) || !strings.Contains(err.Error(), "number of names 4 is out of range: 1 to 3") {
		t.Errorf("one name too many: %v", err)
	}
	if _, err := w.orders().Take(context.Background(), 0); !errors.Is(err, firn.ErrRange) {
		t.Errorf("no ids: %v", err)
	}
}
