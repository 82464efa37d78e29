package segment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

func logTo(log *strings.Builder, level slog.Level) func(*segment.Config) {
	return func(c *segment.Config) {
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	}
}

func TestErrorsSayWhatIsAllowedAndWhatToDo(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(func(c *segment.Config) { c.Max = 20 })
	_, count := n.Reserve(t.Context(), 0)
	_, take := n.Take(t.Context(), 0)
	w.mustTake(n, 20)
	_, exhausted := n.Next(t.Context())
	last := w.name(w.open(func(c *segment.Config) { c.Start = firn.MaxID }), "last")
	w.mustTake(last, 1)
	_, end := last.Next(t.Context())
	_, stripe := w.orders(func(c *segment.Config) { c.Stride = 2 }).Next(t.Context())
	_, step := mustSource(t, segment.Config{Store: w.store}).Fetch(t.Context(), "orders", segment.Ask{})
	_, chain := segment.New(segment.Config{Store: w.store, Chain: 65})
	_, target := segment.New(segment.Config{Store: w.store, Target: 1})
	_, ahead := segment.New(segment.Config{Store: w.store, Ahead: 2})
	_, raise := segment.RaiseCounter(t.Context(), w.store, "orders", -2, whole)
	_, below := segment.New(segment.Config{Store: w.store, Max: -1})
	_, offset := segment.New(segment.Config{Store: w.store, Offset: 7, Stride: 7})
	_, stride := segment.New(segment.Config{Store: w.store, Stride: -7})
	for _, c := range []struct {
		err  error
		want string
	}{
		{count, `segment "orders": number of ids 0 is out of range: 1 to 1048576 are allowed`},
		{take, `segment "orders": number of ids 0 is out of range: 1 to `},
		{n.Raise(t.Context(), -2), `segment "orders": last id -2 is out of range: -1 to 20 are allowed`},
		{n.Raise(t.Context(), 21), `segment "orders": last id 21 is out of range: -1 to 20 are allowed`},
		{exhausted, `segment: ids of "orders" are exhausted: the next would be 21, 20 is the last allowed; raise Max, unless a veil ends there, or use another name`},
		{end, "9223372036854775807 is the last allowed; use another name"},
		{stripe, `segment: "orders" has offset 0 of stride 1, not offset 0 of stride 2: set that of the store, or use another name`},
		{step, "step 0 is out of range: 1 to 1099511627776 are allowed"},
		{chain, "chain 65 is out of range: 1 to 64 are allowed"},
		{offset, "offset 7 is out of range: 0 to 6 are allowed"},
		{target, "target 1ns is out of range: 1ms to 720h0m0s are allowed"},
		{raise, `segment "orders": last id -2 is out of range: -1 to 9223372036854775807 are allowed`},
		{below, "last id -1 is out of range: 1 to 9223372036854775807 are allowed"},
		{ahead, "ahead 2 is out of range: 1e-09 to 1 are allowed"},
		{stride, "stride -7 is out of range: 1 to 1048576 are allowed"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want: %s", c.err, c.want)
		}
	}
	if s := fmt.Sprint(segment.Range{}, " ", segment.Range{First: 1, Count: 3, Stride: 2}); s != "no ids 1 to 5 by 2" {
		t.Error(s)
	}
}

// A log at the level of warnings stays empty while all is well, whatever is asked for.
func TestNoWarningIsLoggedInNormalOperation(t *testing.T) {
	w := newWorld(t, 1)
	var log strings.Builder
	n := w.orders(steps(10, 100), logTo(&log, slog.LevelWarn))
	for range 20 {
		w.mustTake(n, 17)
		w.row(n, 5)
		w.stage.settle()
		if err := n.Raise(t.Context(), w.last[n]+3); err != nil {
			t.Fatal(err)
		}
	}
	w.mustTake(w.orders(func(c *segment.Config) { c.Start = 9000 }, logTo(&log, slog.LevelWarn)), 1)
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

func TestIDsGivenBackAreCountedAndRecorded(t *testing.T) {
	w := newWorld(t, 1)
	var log strings.Builder
	s := w.open(steps(100, 100), logTo(&log, slog.LevelInfo), func(c *segment.Config) { c.Fetches = 1 })
	for i := range 5 {
		w.mustTake(w.name(s, fmt.Sprint("n", i)), 30)
	}
	w.mustTake(w.name(w.open(steps(100, 100)), "n3"), 1) // n3 has gone on elsewhere
	w.name(s, "unused")                                  // which has nothing to give back
	w.close(s)
	if !strings.Contains(log.String(), `msg="segments closed" with_unused_ids=5 given_back=4`) {
		t.Error(log.String())
	}
	e, err := w.mem.Get(t.Context(), register.CounterKey("n0"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Next string
		Step int64
	}
	if err := json.Unmarshal(e.Value, &record); err != nil || record.Next != "31" || record.Step >= 0 || record.Step%100 != -70 {
		t.Errorf("%s, %v", e.Value, err)
	}
}

// After a failure the other names are left alone, but for calls under way, and the error counts those whose
// ids stay unused.
func TestAStoreThatIsAwayIsNotAskedForEachName(t *testing.T) {
	w := newWorld(t, 1)
	s := w.open(steps(100, 100), func(c *segment.Config) { c.Fetches = 2 })
	for i := range 50 {
		w.mustTake(w.name(s, fmt.Sprint("n", i)), 30)
	}
	w.stage.settle()
	before := w.store.Counts().CompareAndSwap
	var writes atomic.Int64
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && writes.Add(1) == 1 {
			return storetest.Pass
		}
		return storetest.FailUnapplied
	}
	err := s.Close(t.Context())
	if tried := w.store.Counts().CompareAndSwap - before; err == nil || tried > 3 || !strings.Contains(err.Error(), "unused ids of 49 names stay unused") {
		t.Errorf("%d tries: %v", tried, err)
	}
}

// Callers of Consecutive alone have the next range fetched in time, and are counted.
func TestRowsHaveTheNextRangeFetchedAhead(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(100, 100))
	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 90 {
		if i == 45 {
			cancel()
		}
		if r, err := n.Reserve(ended, 10); err != nil || r.First != firn.ID(10*i+1) {
			t.Fatalf("%v, %v", r, err)
		}
		w.stage.settle()
	}
	if s := n.State(); s.Waits > 20 || s.Issued != 900 || s.Fetches < 9 || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
}

func TestARaiseToWhereARangeEndsKeepsTheNext(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(100, 100), func(c *segment.Config) { c.Ahead = 1 })
	w.mustTake(n, 10)
	w.stage.settle() // up to 100, and up to 200
	if err := n.Raise(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if id := w.mustTake(n, 1); id != 101 {
		t.Errorf("%d, want 101", id)
	}
	w.store.SetDown(true)
	if err := n.Raise(t.Context(), 100); err == nil {
		t.Error("the store is away, but the counter was raised")
	}
}

func TestACounterOfAnotherKindIsNotRead(t *testing.T) {
	w := newWorld(t, 1)
	if _, err := w.mem.CompareAndSwap(t.Context(), register.CounterKey("foreign"), 0, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if c, err := segment.ReadCounter(t.Context(), w.mem, "foreign"); !errors.Is(err, store.ErrForeign) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestFetchesThatFailedAreCounted(t *testing.T) {
	w := newWorld(t, 1)
	why := errors.New("away")
	n := w.orders(func(c *segment.Config) {
		c.Source = sourceFunc(func(context.Context, string, segment.Ask) (segment.Range, error) {
			if why != nil {
				return segment.Range{}, why
			}
			return segment.Range{First: 1, Count: 10}, nil
		})
	})
	if id, err := n.Next(t.Context()); !errors.Is(err, why) || id != 0 {
		t.Errorf("%d, %v", id, err)
	}
	if s := n.State(); s.Fetches != 1 || s.Failures != 1 || s.Waits != 1 || !errors.Is(s.Err, why) {
		t.Errorf("%+v", s)
	}
	why = nil
	w.stage.now += time.Second
	w.mustTake(n, 1)
	if s := n.State(); s.Fetches != 2 || s.Failures != 1 || s.Waits != 2 || s.Err != nil || s.Left != 9 {
		t.Errorf("%+v", s)
	}
	w.mustTake(n, 8)
	if s := n.State(); s.Left != 1 || s.Lasts <= 0 {
		t.Errorf("one is left: %+v", s)
	}
}

func TestARaiseTakesNoIDs(t *testing.T) {
	w := newWorld(t, 1)
	if _, err := segment.RaiseCounter(t.Context(), w.mem, "orders", 49, whole); err != nil {
		t.Fatal(err)
	}
	if e, err := w.mem.Get(t.Context(), register.CounterKey("orders")); err != nil || !strings.Contains(string(e.Value), `"next":"50","offset":0,"stride":1,"step":0,`) || strings.Contains(string(e.Value), `"writer":""`) {
		t.Errorf("%s, %v", e.Value, err)
	}
}

func TestARaiseToNothingChangesNothing(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders()
	if err := n.Raise(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if id := w.mustTake(n, 1); id != 1 {
		t.Errorf("the first id is %d", id)
	}
}

func TestRangesAreLoggedAtDebugLevel(t *testing.T) {
	w := newWorld(t, 1)
	var log strings.Builder
	w.mustTake(w.orders(steps(10, 10), logTo(&log, slog.LevelDebug)), 1)
	if !strings.Contains(log.String(), `name=orders range="1 to 10"`) {
		t.Error(log.String())
	}
}

func TestWithoutIDsNothingLasts(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(10, 10))
	if s := n.State(); s.Lasts != 0 {
		t.Errorf("before the first call: %+v", s)
	}
	w.mustTake(n, 10)
	w.stage.settle()
	w.store.SetDown(true)
	for n.State().Left > 0 {
		w.mustTake(n, 1)
	}
	if s := n.State(); s.Lasts != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAStateSaysWhichIDsAreIssuedOrHeld(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders()
	if last := n.State().Last; last != -1 {
		t.Errorf("at first: %d", last)
	}
	w.mustTake(n, 1)
	if s := n.State(); s.Last != firn.ID(s.Left)+1 {
		t.Errorf("up to %d, and %d are held after the first", s.Last, s.Left)
	}
	if err := n.Raise(t.Context(), 50_000); err != nil {
		t.Fatal(err)
	}
	if s := n.State(); s.Last < 50_000 {
		t.Errorf("raised: %d", s.Last)
	}
}

// What is wrong with a record says so itself, and so does the store. A caller may try again only after the latter.
func TestAFailedFetchSaysWhyOnce(t *testing.T) {
	w := newWorld(t, 1)
	for name, value := range map[string]string{"striped": `{"next":"1","stride":1}`, "foreign": `{}`, "taken": `{"kind":"sequence"}`} {
		if _, err := w.mem.CompareAndSwap(t.Context(), register.CounterKey(name), 0, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch c.Key {
		case register.CounterKey("refused"):
			return storetest.Refuse
		case register.CounterKey("lost"):
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	source := mustSource(t, segment.Config{Store: w.store, Stride: 2, Max: 1})
	for name, want := range map[string]string{
		"striped": `segment: "striped" has offset 0 of stride 1, not offset 0 of stride 2: set that of the store, or use another name`,
		"foreign": `foreign content: key "firn/counter:foreign" was not written by Firn: stride 0 is out of range: 1 to 1048576 are allowed; use another name, or remove the key`,
		"taken":   `the counter "taken" has the kind "sequence", not "segment", and ids could repeat: use another name, or the settings of those who use it`,
		"used-up": `segment: ids of "used-up" are exhausted: the next would be 2, 1 is the last allowed; raise Max, unless a veil ends there, or use another name`,
		"refused": `segment: fetch a range of "refused": storetest: get "firn/counter:refused": refused by the script`,
		"lost":    `segment: fetch a range of "lost": storetest: get "firn/counter:lost": the answer was lost`,
	} {
		if r, err := source.Fetch(t.Context(), name, segment.Ask{Step: 1, Above: -1}); err == nil || err.Error() != want {
			t.Errorf("%v, %v\nwant %s", r, err, want)
		}
	}
}

// Otherwise a write whose outcome is unknown could be mistaken for another. The rest is for operators.
func TestARecordSaysWhichWriteItIs(t *testing.T) {
	w := newWorld(t, 1)
	source := mustSource(t, segment.Config{Store: w.store, Time: w.stage})
	host, _ := os.Hostname()
	for n := range 3 {
		w.stage.now += time.Second
		if _, err := source.Fetch(t.Context(), "orders", segment.Ask{Step: 1, Above: -1}); err != nil {
			t.Fatal(err)
		}
		e, err := w.mem.Get(t.Context(), register.CounterKey("orders"))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`"write":%d,"host":%q,"pid":%d,"at":"2026-11-20T12:00:0%dZ"}`, n+1, host, os.Getpid(), n+1)
		if text := string(e.Value); !strings.HasSuffix(text, want) || strings.Contains(text, `"writer":""`) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

// late is a time whose years have five digits, which no record can have.
type late struct{ firn.TimeSource }

func (late) Wall() time.Time { return time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestWhatCannotBeWrittenIsNotGranted(t *testing.T) {
	w := newWorld(t, 1)
	r, err := mustSource(t, segment.Config{Store: w.store}).Fetch(t.Context(), "orders", segment.Ask{Step: 10, Above: -1})
	if err != nil {
		t.Fatal(err)
	}
	writes := w.store.Counts().CompareAndSwap
	s := mustSource(t, segment.Config{Store: w.store, Time: late{w.stage}})
	more, fetched := s.Fetch(t.Context(), "orders", segment.Ask{Step: 10, Above: -1})
	given, returned := giveBack(t.Context(), s, r)
	for _, err := range []error{fetched, returned} {
		if given || more.Count != 0 || err == nil || !strings.Contains(err.Error(), "encode a record") {
			t.Errorf("%v, %v, %v", given, more, err)
		}
	}
	if w.store.Counts().CompareAndSwap != writes {
		t.Error("it wrote")
	}
}
