package sequence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

var background = context.Background()

const key = "firn/counter:txn"

// open returns a sequence over s, as a process of its own would have.
func open(t *testing.T, s store.Store, cfg sequence.Config) *sequence.Namespace {
	t.Helper()
	cfg.Store = s
	all, err := sequence.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	txn, err := all.Namespace("txn")
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

// want takes an id.
func want(t *testing.T, s *sequence.Namespace, id firn.ID) {
	t.Helper()
	if got, err := s.Next(background); got != id || err != nil {
		t.Errorf("the next id is %d, %v, want %d", got, err, id)
	}
}

// fails wants an error of a kind that says all words.
func fails(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
}

func TestIdsAreInARow(t *testing.T) {
	s := memstore.New(nil)
	txn := open(t, s, sequence.Config{})
	want(t, txn, 1)
	if first, err := txn.Reserve(background, 10); first != 2 || err != nil {
		t.Errorf("ten ids from %d, %v, want from 2", first, err)
	}
	ids := make([]firn.ID, 3)
	if n, err := txn.Fill(background, ids); n != 3 || err != nil || fmt.Sprint(ids) != "[12 13 14]" {
		t.Errorf("filled %d with %v, %v", n, ids, err)
	}
	if n, err := txn.Fill(background, nil); n != 0 || err != nil {
		t.Errorf("filled nothing with %d, %v", n, err)
	}
	want(t, open(t, s, sequence.Config{Start: 10}), 15)
	want(t, txn, 16)
	if err := txn.Raise(background, 99); err != nil {
		t.Error(err)
	}
	if err := txn.Raise(background, 50); err != nil {
		t.Error(err)
	}
	want(t, txn, 100)
	state := txn.State()
	if state.Last != 100 || state.Served != 5 || state.Issued != 16 || state.Conflicts != 1 || state.Err != nil || state.Batch() == 0 {
		t.Errorf("%+v", state)
	}
	entry, err := s.Get(background, key)
	if err != nil || !bytes.HasPrefix(entry.Value, []byte(`{"kind":"sequence","form":"plain","last":"100","by":"`)) {
		t.Errorf("the record is %s, %v", entry.Value, err)
	}
	if txn.String() != "txn" {
		t.Error(txn)
	}
}

func TestASequenceBeginsAtStart(t *testing.T) {
	want(t, open(t, memstore.New(nil), sequence.Config{Start: 1000}), 1000)
}

// As after a store was set back. Other processes go on above it too, and one that begins lower does not go back.
func TestStartRaisesASequenceThatIsBelow(t *testing.T) {
	s := memstore.New(nil)
	exists(t, s)
	for _, must := range []bool{false, true} {
		other := open(t, s, sequence.Config{MustExist: must})
		first, err := other.Next(background)
		if err != nil {
			t.Fatal(err)
		}
		to := first + 1000
		want(t, open(t, s, sequence.Config{Start: to, MustExist: must}), to)
		want(t, other, to+1)
		want(t, open(t, s, sequence.Config{Start: first, MustExist: must}), to+2)
		want(t, open(t, s, sequence.Config{Start: to, MustExist: must}), to+3)
	}
}

func TestNamesAreThoseOfPools(t *testing.T) {
	all, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"txn", "Order_2026.eu-1", "", "a/b", "ä", "a b", "%00", "\x00", strings.Repeat("x", 64), strings.Repeat("x", 65)} {
		_, err := all.Namespace(name)
		if (err == nil) != (store.CheckName("pool", name) == nil) {
			t.Errorf("%q: %v, a pool: %v", name, err, store.CheckName("pool", name))
		}
		if err != nil {
			fails(t, name, err, firn.ErrSyntax, "sequence name", "allowed")
		}
	}
	one, _ := all.Namespace("txn")
	if two, _ := all.Namespace("txn"); one != two {
		t.Error("one name has two sequences")
	}
}

func TestImpossibleSettingsAreNamedAtOnce(t *testing.T) {
	_, err := sequence.New(sequence.Config{Start: 11, Max: 10, Timeout: 1})
	fails(t, "settings", err, firn.ErrRange, "Config.Store is required", "first id 11", "1 to 10", "timeout 1ns")
	_, err = sequence.New(sequence.Config{Store: memstore.New(nil), Max: -1})
	fails(t, "settings", err, firn.ErrRange, "last id -1")
	_, err = sequence.New(sequence.Config{Store: memstore.New(nil), Start: -1})
	fails(t, "settings", err, firn.ErrRange, "first id -1")
}

func TestBadArguments(t *testing.T) {
	s := memstore.New(nil)
	txn := open(t, s, sequence.Config{Max: 10})
	for _, n := range []int{0, -1, math.MinInt} {
		_, err := txn.Reserve(background, n)
		fails(t, "take", err, firn.ErrRange, fmt.Sprint(n), `"txn"`)
	}
	if n, err := txn.Fill(background, nil); n != 0 || err != nil {
		t.Errorf("nothing to fill: %d, %v", n, err)
	}
	fails(t, "raise", txn.Raise(background, -1), firn.ErrRange, "-1")
	fails(t, "raise", txn.Raise(background, 11), firn.ErrRange, "11", "10")
	ended, cancel := context.WithCancelCause(background)
	cancel(errors.New("gone home"))
	if _, err := txn.Next(ended); !errors.Is(err, context.Canceled) || err.Error() != `sequence "txn": wait for an addition: context canceled: gone home` {
		t.Errorf("with an ended context: %v", err)
	}
	if _, err := s.Get(background, key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("bad calls touched the store: %v", err)
	}
}

func TestARequestThatDoesNotFitTakesNoIDs(t *testing.T) {
	for _, maximum := range []firn.ID{10, firn.MaxID} {
		s := memstore.New(nil)
		txn := open(t, s, sequence.Config{Max: maximum})
		if err := txn.Raise(background, maximum-5); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(s.Snapshot())
		for _, n := range []int{6, 10, math.MaxInt} {
			_, err := txn.Reserve(background, n)
			fails(t, "too many", err, sequence.ErrExhausted, "5 ids left", fmt.Sprint(n))
		}
		if after := fmt.Sprint(s.Snapshot()); after != before {
			t.Errorf("calls that took nothing wrote %s over %s", after, before)
		}
		if first, err := txn.Reserve(background, 2); first != maximum-4 || err != nil {
			t.Errorf("%d, %v", first, err)
		}
		ids := make([]firn.ID, 9)
		n, err := txn.Fill(background, ids)
		if n != 3 || ids[0] != maximum-2 || ids[2] != maximum || ids[3] != 0 {
			t.Errorf("filled %d: %v", n, ids)
		}
		fails(t, "a partial fill", err, sequence.ErrExhausted, "3 ids left")
		if e := (*sequence.ExhaustedError)(nil); !errors.As(err, &e) || e.Max != maximum || e.Want != 9 || e.Left != 3 {
			t.Errorf("of ids up to %d: %+v", maximum, e)
		}
		if n, err := txn.Fill(background, ids); n != 0 || !errors.Is(err, sequence.ErrExhausted) {
			t.Errorf("filled %d, %v of nothing", n, err)
		}
		id, err := txn.Next(background)
		way := "raise Max (at most 9223372036854775807), unless a veil ends there, or use another name"
		if maximum == firn.MaxID {
			way = "use another name"
		}
		fails(t, "the end", err, sequence.ErrExhausted, fmt.Sprintf("0 ids left up to %d, not 1: %s", maximum, way))
		if id != 0 {
			t.Errorf("an id %d with an error", id)
		}
		if state := txn.State(); state.Last != maximum || state.Failures != 0 {
			t.Errorf("%+v", state)
		}
	}
}

func TestARecordAboveMaxIsExhausted(t *testing.T) {
	s := memstore.New(nil)
	if err := open(t, s, sequence.Config{}).Raise(background, firn.MaxID); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, s, sequence.Config{Max: 10}).Reserve(background, 1)
	fails(t, "above Max", err, sequence.ErrExhausted, "0 ids left up to 10")
}

func TestForeignRecords(t *testing.T) {
	for _, value := range []string{
		``, `diary`, `17`, `null`, `[]`, `{}`, `{"last":17}`, `{"last":"-1"}`, `{"last":"many"}`, `{"last":"9223372036854775808"}`,
		`{"layout":"41/0/10/12"}`, "{\"last\":\"1\"}\x00", `{"last":"1","write":"many"}`, `{"last":"1","at":"noon"}`,
	} {
		s := memstore.New(nil)
		if _, err := s.CompareAndSwap(background, key, 0, []byte(value)); err != nil {
			t.Fatal(err)
		}
		_, err := open(t, s, sequence.Config{}).Next(background)
		fails(t, value, err, store.ErrForeign, key, "remove the key")
		if errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "%!") {
			t.Errorf("it is no use to try again, and there is a reason: %v", err)
		}
		if entry, err := s.Get(background, key); err != nil || string(entry.Value) != value {
			t.Errorf("%s became %s, %v", value, entry.Value, err)
		}
	}
	s := memstore.New(nil)
	if _, err := s.CompareAndSwap(background, key, 0, []byte(`{"last":"9"}`)); err != nil {
		t.Fatal(err)
	}
	want(t, open(t, s, sequence.Config{}), 10) // as an operator may write it
}

func TestCallsFailAtOnceWhileTheStoreIsAway(t *testing.T) {
	f := storetest.NewFaulty(memstore.New(nil))
	txn := open(t, f, sequence.Config{})
	f.SetDown(true)
	_, err := txn.Next(background)
	fails(t, "away from the start", err, store.ErrUnavailable, `sequence "txn"`)
	f.SetDown(false)
	want(t, txn, 1)
	f.SetDown(true)
	_, err = txn.Next(background)
	fails(t, "away later", err, store.ErrUnavailable, `sequence "txn"`)
	if strings.Contains(err.Error(), "within") {
		t.Errorf("it did answer: %v", err)
	}
	if state := txn.State(); state.Failures != 2 || !errors.Is(state.Err, store.ErrUnavailable) {
		t.Errorf("%+v", state)
	}
	f.SetDown(false)
	want(t, txn, 2)
	if state := txn.State(); state.Failures != 2 || state.Err != nil {
		t.Errorf("there again: %+v", state)
	}
}

func TestTheStoresRefusalReachesTheCaller(t *testing.T) {
	f := storetest.NewFaulty(memstore.New(nil))
	f.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && c.N == 1 {
			return storetest.Refuse
		}
		return storetest.Pass
	}
	txn := open(t, f, sequence.Config{})
	_, err := txn.Next(background)
	fails(t, "refused", err, store.ErrRefused)
	if errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
	want(t, txn, 1)
}

func TestLostAnswers(t *testing.T) {
	for _, test := range []struct {
		outcome storetest.Outcome
		reads   bool // they are lost as well
		ids     []firn.ID
	}{
		{storetest.FailApplied, false, []firn.ID{1, 2, 3}},
		{storetest.FailUnapplied, false, []firn.ID{1, 2, 3}},
		// Whichever of the two arrives first has its ids; the other changes nothing.
		{storetest.FailLate, false, []firn.ID{1, 3, 4}},
		{storetest.FailApplied, true, []firn.ID{1, 0, 3}},
		{storetest.FailUnapplied, true, []firn.ID{1, 0, 2}},
	} {
		f := storetest.NewFaulty(memstore.New(nil))
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.N == 2 || test.reads && c.Op == storetest.OpGet && c.N == 2 {
				return test.outcome
			}
			return storetest.Pass
		}
		txn := open(t, f, sequence.Config{})
		for i, id := range test.ids {
			if id == 0 {
				_, err := txn.Next(background)
				fails(t, "with the read lost as well", err, store.ErrUnavailable, storetest.ErrAnswerLost.Error())
				continue
			}
			if got, err := txn.Next(background); got != id || err != nil {
				t.Errorf("%v, reads lost %t: id %d is %d, %v, want %d", test.outcome, test.reads, i, got, err, id)
			}
		}
	}
}

func TestEndlessConflictsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New(nil))
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap {
				return storetest.FailUnapplied
			}
			return storetest.Pass
		}
		_, err := open(t, f, sequence.Config{}).Next(background)
		fails(t, "a store that loses every write", err, store.ErrUnavailable, ": 16 writes were not confirmed: ")
	})
}

func TestAWipedOrOlderStoreIsRaised(t *testing.T) {
	s := memstore.New(nil)
	var log bytes.Buffer
	txn := open(t, s, sequence.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	want(t, txn, 1)
	older := s.Snapshot()
	if _, err := txn.Reserve(background, 99); err != nil {
		t.Fatal(err)
	}
	s.Restore(older)
	want(t, txn, 101)
	s.Restore(nil)
	want(t, txn, 102)
	s.Delete(key)
	want(t, txn, 103)
	if state := txn.State(); state.SetBacks != 3 || strings.Count(log.String(), "set back") != 3 || !strings.Contains(log.String(), "found=1 known=100") {
		t.Errorf("%+v\n%s", state, &log)
	}
	// A process that knows nothing starts from the beginning, until one that knows more writes.
	s.Restore(nil)
	newcomer := open(t, s, sequence.Config{})
	want(t, newcomer, 1)
	want(t, txn, 104)
	want(t, newcomer, 105)
}

func TestASequenceThatMustExistRefusesToBeSetBack(t *testing.T) {
	for _, wiped := range []bool{false, true} {
		s := memstore.New(nil)
		exists(t, s)
		var log strings.Builder
		txn := open(t, s, sequence.Config{MustExist: true, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		want(t, txn, 1)
		older := s.Snapshot()
		if _, err := txn.Reserve(background, 99); err != nil {
			t.Fatal(err)
		}
		if wiped {
			older = nil
		}
		s.Restore(older)
		for range 2 {
			_, err := txn.Next(background)
			fails(t, "set back", err, store.ErrSetBack, "has had ids up to 100", "raise")
			var back *store.SetBackError
			if !errors.As(err, &back) || back.Counter != "txn" || back.Missing != wiped || back.Known != 100 || back.Found != firn.ID(len(older)) {
				t.Errorf("%+v", back)
			}
			if errors.Is(err, store.ErrUnavailable) {
				t.Errorf("it is no use to try again: %v", err)
			}
		}
		fails(t, "raised too little", txn.Raise(background, 99), store.ErrSetBack)
		_, err := txn.ReserveIn(background, 1, 150, 1000)
		fails(t, "not raised", err, store.ErrSetBack)
		if now := s.Snapshot(); fmt.Sprint(now) != fmt.Sprint(older) && len(now) != 0 {
			t.Error("a refusal wrote")
		}
		if strings.Contains(log.String(), "raising") {
			t.Errorf("it is not raised:\n%s", &log)
		}
		failed := strings.Count(log.String(), "could make no ids")
		if err := txn.Raise(background, 100); err != nil || failed == 0 || strings.Count(log.String(), "could make no ids") != failed {
			t.Errorf("raised: %v\n%s", err, &log)
		}
		want(t, txn, 101)
	}
}

// cutOff is a store that applies writes, but confirms them only while why is nil, like a
// primary whose replicas are away.
type cutOff struct {
	*memstore.Store
	why error
}

func (c *cutOff) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := c.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil && c.why != nil {
		return store.Entry{}, c.why
	}
	return e, err
}

func TestIDsOfAnUnconfirmedWriteAreNotIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &cutOff{Store: memstore.New(nil)}
		promoted := memstore.New(nil)
		txn := open(t, s, sequence.Config{})
		want(t, txn, 1)
		promoted.Restore(s.Snapshot())
		s.why = fmt.Errorf("%w: no replica confirmed", store.ErrUnavailable)
		elsewhere := open(t, promoted, sequence.Config{})
		for i := range 10 {
			_, err := txn.Next(background)
			fails(t, "not confirmed", err, store.ErrUnavailable, "replica", "16 writes were not confirmed")
			fails(t, "not confirmed", txn.Raise(background, 1), store.ErrUnavailable)
			n, err := txn.Fill(background, make([]firn.ID, 3))
			if fails(t, "not confirmed", err, store.ErrUnavailable); n != 0 {
				t.Errorf("%d ids of a store that confirms nothing", n)
			}
			_, err = open(t, s, sequence.Config{}).Next(background)
			fails(t, "a process that begins there", err, store.ErrUnavailable)
			want(t, elsewhere, firn.ID(2+i)) // all of them are issued there
		}
		s.why = nil
		first, err := txn.Next(background)
		if err != nil || first > 100 {
			t.Errorf("when it confirms again: %d, %v", first, err)
		}
		want(t, txn, first+1)
	})
}

// An addition that was applied, and confirmed when it was written once more, leaves no gap
// for those who still wait; one whose callers have gone does.
func TestAnAdditionOfUnknownOutcomeIsWrittenAgain(t *testing.T) {
	for _, lost := range []int{1, 2, 9} {
		synctest.Test(t, func(t *testing.T) {
			f := storetest.NewFaulty(memstore.New(nil))
			txn := open(t, f, sequence.Config{})
			want(t, txn, 1)
			f.Script = func(c storetest.Call) storetest.Outcome {
				if c.Op == storetest.OpCompareAndSwap && c.N <= 1+lost {
					return storetest.FailApplied
				}
				return storetest.Pass
			}
			if first, err := txn.Reserve(background, 10); err != nil || first != 2 {
				t.Errorf("%d, %v", first, err)
			}
			want(t, txn, 12)
			if s := txn.State(); s.Lost != int64(lost) || s.Additions != 3 || s.Issued != 12 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// An addition that arrives when another was made in its place: the ids of the record that
// is found are not those that were shared out last.
func TestTheIDsOfAnAdditionThatArrivesLateAreNotIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New(nil))
		txn := open(t, f, sequence.Config{})
		want(t, txn, 1)
		ctx, leave := context.WithCancel(background)
		entered := make(chan []firn.ID, 2)
		take := func(ctx context.Context, n int) {
			ids := make([]firn.ID, n)
			filled, _ := txn.Fill(ctx, ids)
			entered <- ids[:filled]
		}
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.N == 2 {
				go take(background, 20) // is in the next addition
				leave()                 // and who was in this one is not
				return storetest.FailLate
			}
			return storetest.Pass
		}
		take(ctx, 5)
		seen := map[firn.ID]bool{}
		for range 2 {
			for _, id := range <-entered {
				seen[id] = true
			}
		}
		next, err := txn.Next(background)
		if err != nil || len(seen) != 20 || seen[next] {
			t.Errorf("%d ids %v, then %d, %v", len(seen), seen, next, err)
		}
		for id := range seen {
			if id > next {
				t.Errorf("%d was issued before %d", id, next)
			}
		}
	})
}

func TestAfterCloseCallsFail(t *testing.T) {
	all, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	txn, _ := all.Namespace("txn")
	want(t, txn, 1)
	for range 2 {
		if err := all.Close(background); err != nil {
			t.Error(err)
		}
	}
	id, err := txn.Next(background)
	if fails(t, "closed", err, firn.ErrClosed, `"txn"`); id != 0 {
		t.Errorf("id %d with an error", id)
	}
	_, err = all.Namespace("other")
	fails(t, "closed", err, firn.ErrClosed)
}

// The tests below are in virtual time: a call of the store takes about 1ms.

func TestCallersShareAnAdditionInOrderOfArrival(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{})
	want := func(after time.Duration, id firn.ID) {
		h.after(after, func() {
			p.Go(func() {
				if got, err := p.txn.Next(background); got != id || err != nil {
					t.Errorf("who came after %v has %d, %v, want %d", after, got, err, id)
				}
			})
		})
	}
	want(0, 1) // reads and writes, and is alone
	for i := range 50 {
		want(5*time.Millisecond+time.Duration(i)*10*time.Microsecond, firn.ID(2+i))
	}
	h.run()
	if state := p.txn.State(); state.Additions != 3 || state.Served != 51 || p.client.calls != 4 {
		t.Errorf("%+v, %d calls of the store: want the first caller, then one, then 49 together", state, p.client.calls)
	}
}

func TestACallerThatLeavesDoesNotHarmOthers(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{})
	var got []firn.ID
	call := func(after, patience time.Duration) {
		h.after(after, func() {
			p.Go(func() {
				ctx, cancel := p.WithTimeout(background, patience)
				defer cancel()
				id, err := p.txn.Next(ctx)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				got = append(got, id)
			})
		})
	}
	call(0, time.Second)
	call(10*time.Millisecond, 100*time.Microsecond) // leaves with its addition on the way
	call(10*time.Millisecond+50*time.Microsecond, time.Second)
	call(10*time.Millisecond+60*time.Microsecond, 100*time.Microsecond) // leaves before its own
	call(10*time.Millisecond+70*time.Microsecond, time.Second)
	h.run()
	slices.Sort(got) // who is answered together may go on in any order
	if fmt.Sprint(got) != "[0 0 1 3 4]" {
		t.Errorf("ids %v: want one gap, of the addition that was on its way", got)
	}
}

func TestNoCallWaitsForEverForASilentStore(t *testing.T) {
	h := newHistory(t, 1)
	h.hung = true
	p := h.start(sequence.Config{Timeout: time.Second})
	for i := range 20 {
		h.after(time.Duration(i)*100*time.Millisecond, func() {
			p.Go(func() {
				begin := h.now
				_, err := p.txn.Next(background)
				fails(t, "no answer", err, store.ErrUnavailable, "within 1s")
				if took := time.Duration(h.now - begin); took > 2*time.Second+time.Millisecond {
					t.Errorf("a call waited %v", took)
				}
			})
		})
	}
	h.run()
}

func TestCloseWaitsForCallsInProgress(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{})
	served := 0
	for range 3 {
		p.Go(func() {
			if _, err := p.txn.Next(background); err != nil {
				t.Error(err)
			}
			served++
		})
	}
	h.after(500*time.Microsecond, func() {
		p.Go(func() {
			if err := p.all.Close(background); err != nil || h.now < int64(time.Millisecond) {
				t.Errorf("closed after %v: %v", time.Duration(h.now), err)
			}
		})
	})
	h.after(510*time.Microsecond, func() {
		p.Go(func() {
			ctx, cancel := p.WithTimeout(background, time.Microsecond)
			defer cancel()
			fails(t, "an impatient second close", p.all.Close(ctx), context.DeadlineExceeded, "additions under way")
			_, err := p.txn.Next(background)
			fails(t, "closing", err, firn.ErrClosed)
			if served > 0 {
				t.Error("that was too late")
			}
			if err := p.all.Close(background); err != nil || served == 0 { // the others have their ids, and their turns come
				t.Errorf("a patient second close, with %d of 3 callers served: %v", served, err)
			}
		})
	})
	h.run()
	if served != 3 {
		t.Errorf("%d of 3 callers were served", served)
	}
}

func TestACloseThatWasImpatientIsRepeated(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{})
	p.Go(func() { _, _ = p.txn.Next(background) })
	h.after(500*time.Microsecond, func() {
		p.Go(func() {
			ctx, cancel := p.WithTimeout(background, time.Microsecond)
			defer cancel()
			first := p.all.Close(ctx)
			fails(t, "an impatient close", first, context.DeadlineExceeded, "under way")
			if again := p.all.Close(background); again != nil {
				t.Errorf("the second time, with time: %v", again)
			}
		})
	})
	h.run()
}

func TestIdleNamesHaveNoGoroutine(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{})
	for i := range 1000 {
		p.Go(func() {
			s, err := p.all.Namespace(fmt.Sprint("name", i))
			if err != nil {
				t.Fatal(err)
			}
			if id, err := s.Next(background); id != 1 || err != nil {
				t.Error(id, err)
			}
		})
	}
	h.run()
	if h.notice(); len(h.tasks) != 0 {
		t.Errorf("%d goroutines are left", len(h.tasks))
	}
}

func TestASmallerRequestFitsBesideATooLargeOne(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{Max: 10})
	got := map[string]string{}
	for _, n := range []int{8, 5, 2, 1} {
		p.Go(func() {
			first, err := p.txn.Reserve(background, n)
			got[fmt.Sprint(n)] = fmt.Sprint(first, errors.Is(err, sequence.ErrExhausted))
		})
	}
	h.run()
	for n, way := range map[string]string{"8": "1 false", "5": "0 true", "2": "9 false", "1": "0 true"} {
		if got[n] != way {
			t.Errorf("%s ids: %s, want %s", n, got[n], way)
		}
	}
}

// The block of a request is that of the ids before it, not that of the addition's first.
func TestARequestFitsIntoTheBlockThatOthersMoveOnTo(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{})
	p.Go(func() {
		if err := p.txn.Raise(background, 9); err != nil {
			t.Error(err)
		}
	})
	h.run()
	for _, c := range []struct {
		n            int
		above, first firn.ID
	}{{1, 10, 11}, {6, 0, 12}} {
		p.Go(func() {
			if first, err := p.txn.ReserveIn(background, c.n, c.above, 10); first != c.first || err != nil {
				t.Errorf("%d above %d: %d, %v, want %d", c.n, c.above, first, err, c.first)
			}
		})
	}
	h.run()
	if state := p.txn.State(); state.Additions != 2 {
		t.Errorf("%+v", state)
	}
}

// If other requests leave too few ids, the error says how many are left after them.
func TestIDsTakenByOthersDoNotCountAsLeft(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{Max: 10})
	left := map[int]int64{}
	for _, n := range []int{3, 10} {
		p.Go(func() {
			_, err := p.txn.Reserve(background, n)
			if exhausted := new(sequence.ExhaustedError); errors.As(err, &exhausted) {
				left[n] = exhausted.Left
			}
		})
	}
	h.run()
	if len(left) != 1 || left[10] != 7 {
		t.Errorf("left beside the others: %v, want 7 for the second", left)
	}
}

// Otherwise a write whose outcome is unknown could be mistaken for another.
func TestNoTwoWritesAreEqual(t *testing.T) {
	s := memstore.New(nil)
	txn := open(t, s, sequence.Config{})
	for n := range 3 {
		if err := txn.Raise(background, 7); err != nil {
			t.Error(err)
		}
		e, err := s.Get(background, key)
		if err != nil || !strings.Contains(string(e.Value), fmt.Sprintf(`"write":%d,`, n+1)) || strings.Contains(string(e.Value), `"by":""`) {
			t.Errorf("%s, %v", e.Value, err)
		}
	}
}

func TestCallsThatComeTogetherShareOneAddition(t *testing.T) {
	h := newHistory(t, 1)
	p := h.start(sequence.Config{})
	for range 5 {
		p.Go(func() {
			if _, err := p.txn.Next(background); err != nil {
				t.Error(err)
			}
		})
	}
	h.run()
	if state := p.txn.State(); state.Additions != 1 || state.Served != 5 || p.client.calls != 2 {
		t.Errorf("%+v, %d calls of the store: want a look and a write", state, p.client.calls)
	}
}

func TestEachCallOfAnAdditionThatFailsIsCounted(t *testing.T) {
	h := newHistory(t, 1)
	h.away = true
	p := h.start(sequence.Config{})
	for range 5 {
		p.Go(func() {
			_, err := p.txn.Next(background)
			fails(t, "away", err, store.ErrUnavailable)
		})
	}
	h.run()
	if state := p.txn.State(); state.Failures != 5 || p.client.calls != 1 {
		t.Errorf("%+v, %d calls of the store", state, p.client.calls)
	}
}

// A request that did not fit into an addition is in the next one, which may fail as often as any.
func TestASuccessfulAdditionEndsTheRowOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New(nil))
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.N%16 > 0 {
				return storetest.FailUnapplied
			}
			return storetest.Pass
		}
		txn := open(t, f, sequence.Config{})
		var all sync.WaitGroup
		for _, c := range []struct {
			n     int
			above int64
			first firn.ID
		}{{6, 0, 1}, {6, 0, 22}, {1, 20, 21}} { // the second waits until the third is in a later block
			all.Go(func() {
				if id, err := txn.ReserveIn(background, c.n, firn.ID(c.above), 10); id != c.first || err != nil {
					t.Errorf("%d above %d begin with %d, %v, want %d", c.n, c.above, id, err, c.first)
				}
			})
			time.Sleep(time.Microsecond)
		}
		all.Wait()
		if state := txn.State(); state.Additions != 2 || state.Lost != 30 || state.Served != 3 || state.Issued != 13 {
			t.Errorf("%+v", state)
		}
	})
}

func TestSettingsAreCheckedWithoutAStore(t *testing.T) {
	if err := (sequence.Config{Max: -1}).Check(); !errors.Is(err, firn.ErrRange) {
		t.Error(err)
	}
	if err := (sequence.Config{}).Check(); err != nil {
		t.Error(err)
	}
}
