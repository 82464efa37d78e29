package sequence_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func TestABlockThatReachesBeyondTheLastIdEndsThere(t *testing.T) {
	for _, block := range []int64{3, 1000, 10_000_000_000, 1 << 62} {
		txn := open(t, memstore.New(nil), sequence.Config{})
		if err := txn.Raise(background, firn.MaxID-5); err != nil {
			t.Fatal(err)
		}
		if block >= 10 {
			first, err := txn.ReserveIn(background, 10, 0, block)
			fails(t, "ten of five", err, sequence.ErrExhausted, "5 ids left")
			if first != 0 {
				t.Errorf("block %d: ten of five ids from %d", block, first)
			}
		}
		last := firn.MaxID - 5
		for {
			first, err := txn.ReserveIn(background, 1, last, block)
			if errors.Is(err, sequence.ErrExhausted) {
				break
			}
			if err != nil || first <= last {
				t.Fatalf("block %d: %d after %d, %v", block, first, last, err)
			}
			last = first
		}
		if block >= 1000 && last != firn.MaxID {
			t.Errorf("block %d: the last id is %d, want %d", block, last, firn.MaxID)
		}
		if _, err := txn.ReserveIn(background, 1, firn.MaxID, block); !errors.Is(err, sequence.ErrExhausted) {
			t.Errorf("block %d: above the last id: %v", block, err)
		}
	}
}

// Raise is what an operator calls after a restore, also on a process that was
// running all the time and knows of greater ids.
func TestRaiseReadsTheStoreEvenIfThisProcessIsFurther(t *testing.T) {
	for _, wiped := range []bool{true, false} {
		s := memstore.New(nil)
		txn := open(t, s, sequence.Config{})
		if _, err := txn.Reserve(background, 500); err != nil {
			t.Fatal(err)
		}
		entry, err := s.Get(background, key)
		if err != nil {
			t.Fatal(err)
		}
		if wiped {
			s.Delete(key)
		} else if _, err := s.CompareAndSwap(background, key, entry.Revision, []byte(`{"last":"3"}`)); err != nil {
			t.Fatal(err)
		}
		if err := txn.Raise(background, 400); err != nil {
			t.Fatal(err)
		}
		id, err := open(t, s, sequence.Config{}).Next(background)
		if err != nil || id <= 400 {
			t.Errorf("wiped %v: another process got %d, %v after the sequence was raised to 400", wiped, id, err)
		}
	}
}

// gate lets a test hold a read.
type gate struct {
	store.Store
	reading, read chan struct{}
}

func (g *gate) Get(ctx context.Context, key string) (store.Entry, error) {
	g.reading <- struct{}{}
	<-g.read
	return g.Store.Get(ctx, key)
}

// yielding lets others go on before it says what time it is.
type yielding struct{ firn.TimeSource }

func (y yielding) Monotonic() time.Duration {
	for range 20 {
		runtime.Gosched()
	}
	return y.TimeSource.Monotonic()
}

// A run ends when no request waits any more, and must not touch any state once another
// run may have begun. (The race detector finds it.)
func TestACallMayComeJustAsTheLastOneLeaves(t *testing.T) {
	for round := range 2000 {
		g := &gate{memstore.New(nil), make(chan struct{}), make(chan struct{})}
		txn := open(t, g, sequence.Config{Time: yielding{firn.SystemTime()}})
		ctx, cancel := context.WithCancel(background)
		left, served := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(left)
			if _, err := txn.Next(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("who left got %v", err)
			}
		}()
		<-g.reading
		cancel()
		<-left
		g.read <- struct{}{}
		go func() {
			defer close(served)
			for range round % 100 {
				runtime.Gosched()
			}
			if id, err := txn.Next(background); id != 1 || err != nil {
				t.Errorf("%d, %v", id, err)
			}
		}()
		select {
		case <-g.reading: // by an addition of its own
			g.read <- struct{}{}
			<-served
		case <-served: // by the one that was under way
		}
	}
}
