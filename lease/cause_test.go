package lease

import (
	"context"
	"errors"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

// pretending is a cause with a method that those of stores once had.
type pretending struct{ error }

func (pretending) Own() bool       { return true }
func (p pretending) Unwrap() error { return p.error }

// An errgroup, for example, cancels with the first error of its goroutines, which may be that of another lease.
func TestAClaimIsUndoneWhateverTheCauseOfItsContext(t *testing.T) {
	for _, cause := range []error{errors.New("plain"), ErrLost, ErrOverlap, ErrFull, errAgain, errPart, errPast, store.ErrConflict, store.ErrForeign, pretending{store.ErrConflict}} {
		w := newWorld(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		hooks := &hooked{Store: w.mem, afterWrite: func() { cancel(cause) }}
		cfg := w.config(func(c *Config) { c.Store = hooks })
		_, err := start(ctx, must(newPoolSource(cfg)), cfg)
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrConflict) {
			t.Errorf("cause %v: %v", cause, err)
		}
		for _, slot := range must(Inspect(context.Background(), w.mem, "default")).Slots {
			if !slot.Free {
				t.Errorf("cause %v: %+v", cause, slot)
			}
		}
	}
}

// The worker stays unused until its fence then.
func TestAReleaseThatFailsIsReportedWhateverTheCauseOfItsContext(t *testing.T) {
	w := newWorld(t)
	l := w.start()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrLost)
	if err := l.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A call to a locked SQLite file ends with its context: no other process was faster.
func TestJoiningThatItsContextEndsSaysNothingOfOthers(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		w.store.Script = func(storetest.Call) storetest.Outcome {
			if calls++; calls == n {
				cancel()
			}
			return storetest.Pass
		}
		cfg := w.config(w.shared)
		_, err := start(ctx, must(newPoolSource(cfg)), cfg)
		if err == nil {
			if n < 10 {
				t.Errorf("only %d calls", n)
			}
			cancel()
			return
		}
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrConflict) {
			t.Errorf("canceled at call %d: %v", n, err)
		}
	}
}
