package sequence_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// gated lets reads wait while it is shut.
type gated struct {
	store.Store
	mu   sync.Mutex
	gate chan struct{} // nil: open
}

func (g *gated) Get(ctx context.Context, key string) (store.Entry, error) {
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return g.Store.Get(ctx, key)
}

func (g *gated) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = make(chan struct{})
}

func (g *gated) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.gate)
	g.gate = nil
}

// exists makes the sequence txn without an id.
func exists(t *testing.T, s store.Store) {
	t.Helper()
	if err := open(t, s, sequence.Config{}).Raise(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

// wiped returns two sequences of one name that must exist: ids up to 100 came from the first, up to 150 from the other, and the store
// has forgotten them.
func wiped(t *testing.T) (*gated, *sequence.Namespace) {
	t.Helper()
	mem := memstore.New(nil)
	g := &gated{Store: mem}
	exists(t, mem)
	a, b := open(t, g, sequence.Config{MustExist: true}), open(t, mem, sequence.Config{MustExist: true})
	if _, err := a.Reserve(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if first, err := b.Reserve(t.Context(), 50); err != nil || first != 101 {
		t.Fatal(first, err)
	}
	mem.Restore(nil)
	return g, a
}

// Callers go on to ask while an operator raises a sequence that must exist and was set back. None gets an id that was received
// elsewhere, whether it asked before the raise or after it.
func TestOnlyARaiseContinuesASequenceThatMustExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, txn := wiped(t)
		g.shut()
		type answer struct {
			id  firn.ID
			err error
		}
		answers := make(chan answer, 2)
		next := func() {
			id, err := txn.Next(t.Context())
			answers <- answer{id, err}
		}
		go next() // reads
		synctest.Wait()
		go next() // waits for the next addition, with the raise
		synctest.Wait()
		raised := make(chan error, 1)
		go func() { raised <- txn.Raise(t.Context(), 150) }()
		synctest.Wait()
		g.open()
		for range 2 {
			if got := <-answers; !errors.Is(got.err, store.ErrSetBack) {
				t.Errorf("asked before the raise: %d, %v", got.id, got.err)
			}
		}
		if err := <-raised; err != nil {
			t.Error(err)
		}
		if n := txn.State().Failures; n != 2 {
			t.Errorf("%d calls failed, want 2: the raise beside them did not", n)
		}
		if id, err := txn.Next(t.Context()); id != 151 || err != nil {
			t.Errorf("after the raise: %d, %v", id, err)
		}
	})
}

// The caller of Raise gives up while the record is read: nothing is raised, and no id is issued.
func TestARaiseThatWasGivenUpContinuesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, txn := wiped(t)
		g.shut()
		ctx, giveUp := context.WithCancel(t.Context())
		raised := make(chan error, 1)
		go func() { raised <- txn.Raise(ctx, 150) }()
		synctest.Wait()
		failed := make(chan error, 1)
		go func() {
			_, err := txn.Next(t.Context())
			failed <- err
		}()
		synctest.Wait()
		giveUp()
		if err := <-raised; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		g.open()
		if err := <-failed; !errors.Is(err, store.ErrSetBack) {
			t.Error(err)
		}
	})
}

// A look whose read fails says so, though the store answers again a moment later; after Close it reads nothing.
func TestALookThatFailsRaisesNothing(t *testing.T) {
	mem := memstore.New(nil)
	s := storetest.NewFaulty(mem)
	all, err := sequence.New(sequence.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	txn, err := all.Namespace("txn")
	if err != nil {
		t.Fatal(err)
	}
	want(t, txn, 1)
	calls := 0
	s.Script = func(storetest.Call) storetest.Outcome {
		if calls++; calls == 1 {
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	fails(t, "a read that failed", txn.Look(background), store.ErrUnavailable, "look")
	if err := all.Close(background); err != nil {
		t.Fatal(err)
	}
	fails(t, "after Close", txn.Look(background), firn.ErrClosed, "txn")
	if calls != 1 {
		t.Errorf("%d calls of the store", calls)
	}
}

// The first id alone is a loss too, and a look of a sequence that must exist raises nothing.
func TestALookRaisesNoSequenceThatMustExist(t *testing.T) {
	mem := memstore.New(nil)
	exists(t, mem)
	txn := open(t, mem, sequence.Config{MustExist: true})
	want(t, txn, 1)
	mem.Restore(nil)
	fails(t, "look", txn.Look(background), store.ErrSetBack, "has lost the counter")
	if now := mem.Snapshot(); len(now) != 0 {
		t.Errorf("a look wrote: %v", now)
	}
}

// Others may go on with a sequence that was raised too low: that is one loss for one that must exist. One that need not exist
// is raised at once; if the store takes no write, each record that lies below is a loss.
func TestLossesOfASequenceAreCounted(t *testing.T) {
	for must, losses := range map[bool]int64{true: 1, false: 3} {
		mem := memstore.New(nil)
		exists(t, mem)
		s := storetest.NewFaulty(mem)
		txn := open(t, s, sequence.Config{MustExist: must})
		if _, err := txn.Reserve(background, 100); err != nil {
			t.Fatal(err)
		}
		s.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap {
				return storetest.Refuse
			}
			return storetest.Pass
		}
		mem.Restore(nil)
		for last := firn.ID(5); last < 8; last++ {
			if err := open(t, mem, sequence.Config{}).Raise(background, last); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := txn.Next(background); err == nil {
					t.Error("an id without a write")
				}
			}
		}
		if n := txn.State().SetBacks; n != losses {
			t.Errorf("must exist %t: %d losses, want %d", must, n, losses)
		}
	}
}

// A process that makes no ids for a while still keeps others from those that it knows, if it looks.
func TestALookRaisesASequenceThatWasSetBack(t *testing.T) {
	for _, must := range []bool{false, true} {
		for _, wiped := range []bool{false, true} {
			mem := memstore.New(nil)
			exists(t, mem)
			s := storetest.NewFaulty(mem)
			txn := open(t, s, sequence.Config{MustExist: must})
			if err := txn.Look(background); err != nil || s.Counts().Get != 0 {
				t.Errorf("before it had an id: %v, %d reads", err, s.Counts().Get)
			}
			want(t, txn, 1)
			older := mem.Snapshot()
			want(t, txn, 2)
			for range 2 {
				if err := txn.Look(background); err != nil || s.Counts().CompareAndSwap != 2 {
					t.Errorf("as it was: %v, %d writes", err, s.Counts().CompareAndSwap)
				}
			}
			if mem.Restore(older); wiped {
				mem.Restore(nil)
			}
			err := txn.Look(background)
			if must != errors.Is(err, store.ErrSetBack) || !must && err != nil || txn.State().SetBacks != 1 {
				t.Errorf("must exist %t, wiped %t: %v, %d set backs", must, wiped, err, txn.State().SetBacks)
			}
			if !must {
				want(t, open(t, s, sequence.Config{}), 3)
			}
			s.Script = func(storetest.Call) storetest.Outcome { return storetest.FailUnapplied }
			if err := txn.Look(background); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a store that is away: %v", err)
			}
		}
	}
}
