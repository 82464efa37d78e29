package sequence_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// clocked is a store with a clock.
type clocked struct{ store.Store }

func (clocked) Traits() store.Traits { return store.Traits{Clock: noon{}} }

type noon struct{}

func (noon) Now(context.Context) (time.Time, error) {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), nil
}

func TestErrorsSayWhatIsAllowed(t *testing.T) {
	all, err := sequence.New(sequence.Config{Store: clocked{memstore.New(nil)}, Max: 50, Timeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.Namespace("txn")
	if err != nil {
		t.Fatal(err)
	}
	if s.Timeout() != 3*time.Second || s.Clock() != (noon{}) {
		t.Error(s.Timeout(), s.Clock())
	}
	for want, ask := range map[string]func(ctx context.Context) (firn.ID, error){
		`sequence "txn": number of ids 0 is out of range: 1 to 9223372036854775807 are allowed`: func(ctx context.Context) (firn.ID, error) { return s.Reserve(ctx, 0) },
		`sequence "txn": block 0 is out of range: 1 to 9223372036854775807 are allowed`:         func(ctx context.Context) (firn.ID, error) { return s.ReserveIn(ctx, 1, 0, 0) },
		`sequence "txn": number of ids 0 is out of range: 1 to 10 are allowed`:                  func(ctx context.Context) (firn.ID, error) { return s.ReserveIn(ctx, 0, 0, 10) },
		`sequence "txn": number of ids 11 is out of range: 1 to 10 are allowed`:                 func(ctx context.Context) (firn.ID, error) { return s.ReserveIn(ctx, 11, 0, 10) },
		`sequence "txn": above -1 is out of range: 0 to 50 are allowed`:                         func(ctx context.Context) (firn.ID, error) { return s.ReserveIn(ctx, 1, -1, 10) },
		`sequence "txn": above 51 is out of range: 0 to 50 are allowed`:                         func(ctx context.Context) (firn.ID, error) { return s.ReserveIn(ctx, 1, 51, 10) },
		`sequence "txn": last id -1 is out of range: 0 to 50 are allowed`:                       func(ctx context.Context) (firn.ID, error) { return 0, s.Raise(ctx, -1) },
		`sequence "txn": last id 51 is out of range: 0 to 50 are allowed`:                       func(ctx context.Context) (firn.ID, error) { return 0, s.Raise(ctx, 51) },
	} {
		if id, err := ask(t.Context()); !errors.Is(err, firn.ErrRange) || !strings.Contains(err.Error(), want) || id != 0 {
			t.Errorf("%d, %v, want %s", id, err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := s.Next(ended); !errors.Is(err, context.Canceled) || id != 0 {
		t.Errorf("%d, %v", id, err)
	}
	if err := s.Raise(t.Context(), 0); err != nil { // any number of times, and to what is lower
		t.Error(err)
	}
	if n, err := s.Fill(t.Context(), make([]firn.ID, 60)); n != 50 || err == nil || !strings.Contains(err.Error(), `sequence "txn" has 50 ids left`) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := sequence.New(sequence.Config{Store: memstore.New(nil), Timeout: time.Millisecond}); err != nil {
		t.Error(err)
	}
	one, err := sequence.New(sequence.Config{Store: memstore.New(nil), Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	only, err := one.Namespace("only")
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]firn.ID, 1)
	if n, err := only.Fill(t.Context(), ids); n != 1 || err != nil || ids[0] != 1 {
		t.Errorf("%d of %v, %v", n, ids, err)
	}
	if n, err := only.Fill(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("nothing to fill: %d, %v", n, err)
	}
	if _, err := sequence.New(sequence.Config{Store: memstore.New(nil), Timeout: 1}); err == nil || !strings.Contains(err.Error(), "timeout 1ns is out of range: 1ms to 24h0m0s are allowed") {
		t.Error(err)
	}
	if _, err := sequence.New(sequence.Config{Store: memstore.New(nil), Max: -1}); err == nil || !strings.Contains(err.Error(), "last id -1") {
		t.Error(err)
	}
}

// The first number of a block is below all ids that may be asked for in it.
func TestAWholeBlockIsNeverLeft(t *testing.T) {
	all, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.Namespace("txn")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := s.ReserveIn(t.Context(), 1, 0, 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("a block of one: %d, %v", id, err)
	}
	if id, err := s.ReserveIn(t.Context(), 5, 97, 100); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("2 are left behind 97: %d, %v", id, err)
	}
	for above, left := range map[firn.ID]string{0: "9 ids left up to 9", 5: "4 ids left up to 9", 9: "0 ids left up to 9", 10: "9 ids left up to 19"} {
		if id, err := s.ReserveIn(t.Context(), 10, above, 10); !errors.Is(err, sequence.ErrExhausted) || !strings.Contains(err.Error(), left) {
			t.Errorf("above %d: %d, %v, want %s", above, id, err, left)
		}
	}
}

func TestABatchIsTheMeanOfCallsInAnAddition(t *testing.T) {
	for _, c := range []struct {
		state sequence.State
		want  float64
	}{{sequence.State{}, 0}, {sequence.State{Additions: 1, Served: 3}, 3}, {sequence.State{Additions: 4, Served: 10}, 2.5}} {
		if got := c.state.Batch(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.state, got, c.want)
		}
	}
}

// late is a time whose years have five digits, which no record can have.
type late struct{ firn.TimeSource }

func (late) Wall() time.Time { return time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestWhatCannotBeWrittenIsNotIssued(t *testing.T) {
	f := storetest.NewFaulty(memstore.New(nil))
	id, err := open(t, f, sequence.Config{Time: late{firn.SystemTime()}}).Next(t.Context())
	if id != 0 || err == nil || !strings.Contains(err.Error(), "encode a record") || f.Counts().CompareAndSwap != 0 {
		t.Errorf("%d, %v", id, err)
	}
}
