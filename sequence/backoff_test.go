package sequence_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// lagging is a store whose reads come from a copy, which is behind until some time.
type lagging struct {
	*memstore.Store
	old   store.Entry
	until time.Time
	calls int
}

func (l *lagging) Get(ctx context.Context, key string) (store.Entry, error) {
	l.calls++
	if time.Now().Before(l.until) {
		return l.old, nil
	}
	return l.Store.Get(ctx, key)
}

func (l *lagging) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	l.calls++
	return l.Store.CompareAndSwap(ctx, key, old, value)
}

// behind returns a store with a sequence that is at 2, and reads that are behind for d.
func behind(t *testing.T, d time.Duration) *lagging {
	t.Helper()
	l := &lagging{Store: memstore.New(nil)}
	txn := open(t, l.Store, sequence.Config{})
	want(t, txn, 1)
	var err error
	if l.old, err = l.Store.Get(background, key); err != nil {
		t.Fatal(err)
	}
	want(t, txn, 2)
	l.until = time.Now().Add(d)
	return l
}

func TestFailedAttemptsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := behind(t, time.Hour)
		txn := open(t, l, sequence.Config{})
		for range 2 {
			l.calls = 0
			began := time.Now()
			_, err := txn.Next(background)
			fails(t, "reads that lag", err, store.ErrUnavailable, `sequence "txn"`, "replica", " conflicts within 5s", `a cache: memstore: compare-and-swap "firn/counter:txn": conflict: revision `)
			if strings.Contains(err.Error(), store.ErrUnavailable.Error()) {
				t.Errorf("the store did answer: %v", err)
			}
			if took := time.Since(began); took < 5*time.Second || took > 5*time.Second+time.Millisecond {
				t.Errorf("a call failed after %v, want 5s", took)
			}
			if l.calls < 20 || l.calls > 100 {
				t.Errorf("%d calls of the store in 5s", l.calls)
			}
		}
		l.until = time.Now()
		want(t, txn, 3)
	})
}

func TestReadsThatCatchUpEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := behind(t, 20*time.Millisecond)
		txn := open(t, l, sequence.Config{})
		began := time.Now()
		want(t, txn, 3)
		if took := time.Since(began); took > 80*time.Millisecond || l.calls > 20 {
			t.Errorf("%d calls of the store in %v", l.calls, took)
		}
		began = time.Now()
		want(t, txn, 4)
		if took := time.Since(began); took > time.Millisecond { // a distance from the other, and no more
			t.Errorf("the next id took %v", took)
		}
	})
}

func TestLostAnswersBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			lost        int
			least, most time.Duration
		}{{1, 0, 0}, {2, time.Millisecond, 3 * time.Millisecond}, {9, 127 * time.Millisecond, 765 * time.Millisecond}} {
			f := storetest.NewFaulty(memstore.New(nil))
			f.Script = func(call storetest.Call) storetest.Outcome {
				if call.Op == storetest.OpCompareAndSwap && call.N <= c.lost {
					return storetest.FailUnapplied
				}
				return storetest.Pass
			}
			began := time.Now()
			want(t, open(t, f, sequence.Config{}), 1)
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("%d answers were lost: it took %v, want %v to %v", c.lost, took, c.least, c.most)
			}
		}
	})
}

func TestACallerThatLeavesDuringAWaitLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := behind(t, time.Hour)
		txn := open(t, l, sequence.Config{})
		ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := txn.Next(ctx)
		fails(t, "an impatient call", err, context.DeadlineExceeded)
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		l.calls = 0
		time.Sleep(time.Minute)
		synctest.Wait()
		if l.calls != 0 {
			t.Errorf("%d calls of the store without a caller", l.calls)
		}
		l.until = time.Now()
		want(t, txn, 3)
	})
}

// A process that finds its own write is alone, and does not wait for others.
func TestAProcessDoesNotTakeItsOwnWriteForAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New(nil))
		f.Script = func(call storetest.Call) storetest.Outcome {
			if call.Op == storetest.OpCompareAndSwap && call.N == 2 {
				return storetest.FailApplied
			}
			return storetest.Pass
		}
		txn := open(t, f, sequence.Config{})
		began := time.Now()
		for id := range firn.ID(10) {
			want(t, txn, id+1)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("10 ids took %v", took)
		}
	})
}

// unsleeping is a time source whose Sleep fails.
type unsleeping struct {
	firn.TimeSource
	why error
}

func (u unsleeping) Sleep(context.Context, time.Duration) error { return u.why }

func TestAWaitThatFailsFailsTheCall(t *testing.T) {
	f := storetest.NewFaulty(memstore.New(nil))
	f.Script = func(call storetest.Call) storetest.Outcome {
		if call.Op == storetest.OpCompareAndSwap && call.N <= 2 {
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	why := errors.New("the clock is broken")
	txn := open(t, f, sequence.Config{Time: unsleeping{firn.SystemTime(), why}})
	if id, err := txn.Next(background); !errors.Is(err, why) || id != 0 {
		t.Errorf("%d, %v", id, err)
	}
	want(t, txn, 1)
}

// mute is a store that does not answer writes.
type mute struct{ *memstore.Store }

func (m mute) CompareAndSwap(ctx context.Context, _ string, _ store.Revision, _ []byte) (store.Entry, error) {
	<-ctx.Done()
	return store.Entry{}, store.ContextError(ctx)
}

func TestAWriteWithoutAnAnswerIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		txn := open(t, mute{memstore.New(nil)}, sequence.Config{Timeout: time.Second})
		began := time.Now()
		_, err := txn.Next(background)
		if took := time.Since(began); took != time.Second || err == nil || err.Error() != `sequence "txn": add: no answer within 1s: context deadline exceeded` {
			t.Errorf("after %v: %v", took, err)
		}
		fails(t, "no answer", err, store.ErrUnavailable)
	})
}

// rivalled is a store in which others write before each write.
type rivalled struct {
	*memstore.Store
	rival *sequence.Namespace
}

func (r *rivalled) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if _, err := r.rival.Next(ctx); err != nil {
		return store.Entry{}, err
	}
	return r.Store.CompareAndSwap(ctx, key, old, value)
}

// It is not said to be a cache: the others do write.
func TestACallFailsIfOthersAreQuickerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		_, err := open(t, &rivalled{mem, open(t, mem, sequence.Config{})}, sequence.Config{}).Next(background)
		fails(t, "others are quicker", err, store.ErrUnavailable, `sequence "txn": add: others were quicker 1024 times: `)
	})
}

// The batch of the lost addition is empty when the next caller comes.
func TestAnAdditionWhoseCallersHaveGoneIsNotWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New(nil))
		txn := open(t, f, sequence.Config{})
		want(t, txn, 1)
		ctx, leave := context.WithCancel(background)
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.N == 2 {
				leave()
				time.Sleep(time.Millisecond)
				return storetest.FailApplied
			}
			return storetest.Pass
		}
		_, err := txn.Reserve(ctx, 5)
		fails(t, "who has gone", err, context.Canceled)
		time.Sleep(time.Second)
		want(t, txn, 7)
		if state := txn.State(); state.Additions != 2 || f.Counts().CompareAndSwap != 3 {
			t.Errorf("%+v, %d writes", state, f.Counts().CompareAndSwap)
		}
	})
}

func TestWhoHasSeenAnotherProcessReadsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(nil)
		a, b := open(t, s, sequence.Config{}), open(t, s, sequence.Config{})
		for id := firn.ID(1); id < 20; id += 2 {
			want(t, a, id)
			want(t, b, id+1)
		}
		if a, b := a.State().Conflicts, b.State().Conflicts; a != 1 || b != 0 {
			t.Errorf("%d and %d conflicts, want the first of one that was alone", a, b)
		}
	})
}

// A store that loses answers is not said to be a cache.
func TestACallWhoseWritesAreLostForTooLongSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New(nil))
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap {
				return storetest.FailUnapplied
			}
			return storetest.Pass
		}
		began := time.Now()
		_, err := open(t, f, sequence.Config{Timeout: 100 * time.Millisecond}).Next(background)
		fails(t, "lost for too long", err, store.ErrUnavailable, " writes were not confirmed: ")
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}
