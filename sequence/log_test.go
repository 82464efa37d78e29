package sequence_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// gone is a store that can be switched off.
type gone struct {
	store.Store
	away atomic.Bool
}

func (g *gone) Get(ctx context.Context, key string) (store.Entry, error) {
	if g.away.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	return g.Store.Get(ctx, key)
}

func (g *gone) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if g.away.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	return g.Store.CompareAndSwap(ctx, key, old, value)
}

func TestAnOutageIsLoggedOncePerSequence(t *testing.T) {
	var log bytes.Buffer
	s := &gone{Store: memstore.New(nil)}
	txn := open(t, s, sequence.Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if _, err := txn.Next(background); err != nil || !strings.HasSuffix(log.String(), `level=INFO msg="a counter is new in this store" name=txn first=1`+"\n") {
		t.Errorf("%v; the log has\n%s", err, log.String())
	}
	for range 2 {
		log.Reset()
		s.away.Store(true)
		for range 3 {
			if id, err := txn.Next(background); err == nil {
				t.Errorf("%d without a store", id)
			}
		}
		s.away.Store(false)
		for range 3 {
			if _, err := txn.Next(background); err != nil {
				t.Error(err)
			}
		}
		if text := log.String(); strings.Count(text, "level=WARN") != 1 || strings.Count(text, "level=INFO") != 1 || strings.Count(text, "level=DEBUG") != 2 || strings.Count(text, "\n") != 4 {
			t.Errorf("the log has\n%s", text)
		}
	}
}

// However often the record is read before it could be raised.
func TestALossIsLoggedAndCountedOnce(t *testing.T) {
	var log bytes.Buffer
	mem := memstore.New(nil)
	f := storetest.NewFaulty(mem)
	txn := open(t, f, sequence.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	want(t, txn, 1)
	mem.Restore(nil)
	writes := f.Counts().CompareAndSwap
	f.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && c.N <= writes+3 {
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	want(t, txn, 2)
	if text, state := log.String(), txn.State(); strings.Count(text, "was set back") != 1 || strings.Count(text, "is new in this store") != 1 || state.SetBacks != 1 || state.Lost < 2 {
		t.Errorf("%+v, the log has\n%s", state, text)
	}
}
