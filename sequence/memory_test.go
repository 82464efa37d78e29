package sequence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// A sequence opened later knows what an earlier one has issued.
func TestSequencesThatShareAMemoryGoOnAboveEachOther(t *testing.T) {
	for _, must := range []bool{false, true} {
		s, memory := memstore.New(nil), &register.Memory{}
		early := open(t, s, sequence.Config{Memory: memory})
		older := s.Snapshot()
		want(t, early, 1)
		late := open(t, s, sequence.Config{Memory: memory, MustExist: must})
		want(t, early, 2)
		s.Restore(older)
		if _, err := late.Next(background); must != errors.Is(err, store.ErrSetBack) || !must && err != nil {
			t.Errorf("must exist %v: %v", must, err)
		}
		want(t, early, map[bool]firn.ID{false: 4, true: 3}[must])
		if n := late.State().SetBacks; n != 1 {
			t.Errorf("must exist %v: %d set backs", must, n)
		}
	}
}

// Also if the one that read them made none of its own.
func TestSequencesThatShareAMemoryKnowWhatEachHasRead(t *testing.T) {
	mem, memory := memstore.New(nil), &register.Memory{}
	want(t, open(t, mem, sequence.Config{}), 1)
	s := &scripted{Store: mem, next: func(context.Context, string, store.Revision, []byte) (store.Entry, error) {
		return store.Entry{}, store.ErrRefused
	}}
	_, err := open(t, s, sequence.Config{Memory: memory}).Next(background)
	fails(t, "refused", err, store.ErrRefused)
	mem.Restore(nil)
	want(t, open(t, mem, sequence.Config{Memory: memory}), 2)
}

// The copy that the store was set back to is the record that one of them has read last.
func TestASetBackIsCountedByWhomeverItIsFound(t *testing.T) {
	mem, memory := memstore.New(nil), &register.Memory{}
	var log bytes.Buffer
	cfg := sequence.Config{Memory: memory, Log: slog.New(slog.NewTextHandler(&log, nil))}
	a, b := open(t, mem, cfg), open(t, mem, cfg)
	want(t, a, 1)
	older := mem.Snapshot()
	want(t, b, 2)
	for i := range int64(3) {
		mem.Restore(older)
		want(t, a, firn.ID(3+i))
		if n := b.State().SetBacks; n != i+1 || int64(strings.Count(log.String(), "was set back")) != n {
			t.Errorf("%d set backs, want %d:\n%s", n, i+1, &log)
		}
	}
}

// The other hangs at the store. A call that gives up its turn ends like any that fails: later ones are served.
func TestACallWaitsForOthersOfTheProcessOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, memory := memstore.New(nil), &register.Memory{}
		other := open(t, mute{mem}, sequence.Config{Memory: memory, Timeout: 10 * time.Second})
		txn := open(t, mem, sequence.Config{Memory: memory, Timeout: time.Second})
		go func() { _, _ = other.Next(background) }()
		synctest.Wait()
		_, err := txn.Next(background)
		fails(t, "it is not its turn", err, store.ErrUnavailable, `sequence "txn": wait: no answer within 1s: `)
		time.Sleep(10 * time.Second)
		want(t, txn, 1)
	})
}

// scripted calls a function in place of the next write.
type scripted struct {
	*memstore.Store
	next func(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error)
}

func (s *scripted) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if next := s.next; next != nil {
		s.next = nil
		return next(ctx, key, old, value)
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

// The answer to a write is lost, another sequence of the process goes on, and the store loses that and applies the late write.
func TestALateWriteGivesNoIDsThatTheProcessHasHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, memory := memstore.New(nil), &register.Memory{}
		sa, sb := &scripted{Store: mem}, &scripted{Store: mem}
		a, b := open(t, sa, sequence.Config{Memory: memory}), open(t, sb, sequence.Config{Memory: memory})
		if _, err := a.Reserve(background, 60); err != nil {
			t.Fatal(err)
		}
		older := mem.Snapshot()
		got := make(chan firn.ID, 1)
		sa.next = func(_ context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
			late := bytes.Clone(value)
			sb.next = func(ctx context.Context, key string, now store.Revision, value []byte) (store.Entry, error) {
				e, err := mem.CompareAndSwap(ctx, key, now, value)
				mem.Restore(older)
				if _, err := mem.CompareAndSwap(ctx, key, old, late); err != nil {
					t.Error(err)
				}
				return e, err
			}
			go func() {
				first, err := b.Reserve(background, 3)
				if err != nil {
					t.Error(err)
				}
				got <- first
			}()
			time.Sleep(time.Millisecond) // of the bubble: b waits for its turn
			return store.Entry{}, fmt.Errorf("no answer: %w", store.ErrUnavailable)
		}
		first, err := a.Reserve(background, 5)
		if err != nil {
			t.Fatal(err)
		}
		if other := <-got; first <= other+2 && other <= first+4 {
			t.Errorf("one has %d to %d, the other %d to %d", first, first+4, other, other+2)
		}
	})
}
