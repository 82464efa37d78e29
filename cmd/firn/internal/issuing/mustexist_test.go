package issuing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A lockedLog is read while others write it.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// raisedTo raises the four counters, as firn raise does.
func raisedTo(t *testing.T, s store.Store, last firn.ID) {
	t.Helper()
	for _, name := range counterNames {
		var err error
		switch name {
		case "orders":
			_, err = segment.RaiseCounter(t.Context(), s, name, last, segment.Stripe{Stride: 1})
		case "halves":
			_, err = segment.RaiseCounter(t.Context(), s, name, last, segment.Stripe{Offset: 1, Stride: 2})
		default:
			err = raiseSequence(t.Context(), s, name, last)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func raiseSequence(ctx context.Context, s store.Store, name string, last firn.ID) error {
	all, err := sequence.New(sequence.Config{Store: s})
	if err != nil {
		return err
	}
	one, err := all.Namespace(name)
	if err == nil && name == "bills" {
		_, err = numbering.New(numbering.Config{Template: "N{n:9}", Counter: one})
	}
	if err == nil {
		err = one.Raise(ctx, last)
	}
	return errors.Join(err, all.Close(ctx))
}

// refuses checks that a server makes no ids of the counters, because they were set back.
func refuses(t *testing.T, s *issuing.Service, names ...string) {
	t.Helper()
	f := s.Front(issuing.HTTP)
	for _, name := range names {
		var b issuing.Batch
		if err := take(t, f, local(t, f), name, 5, &b); err == nil || failure.Of(err).Code != "set_back" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever runs and whoever starts, before and after the loss: no counter is made or raised but by a person.
func TestServersMakeNoCounterThatMustExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := strings.ReplaceAll(fourCounters, "}\n", ", must_exist: true}\n")
		config = strings.Replace(config, "{kind: uuid, must_exist: true}", "{kind: uuid}", 1)
		d := &distant{Store: memstore.New(nil)}
		var log lockedLog
		running := opened(t, d, config, func(cfg *issuing.Config) { cfg.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		refuses(t, running, counterNames...)
		time.Sleep(time.Minute)
		if n := len(d.Snapshot()); n != 0 {
			t.Errorf("it wrote %d registers", n)
		}
		raisedTo(t, d, 0)
		time.Sleep(2 * time.Second)
		made := map[string]bool{}
		issued(t, running, made, 500, counterNames...)
		d.Restore(nil)
		time.Sleep(time.Minute)
		started := opened(t, d, config)
		refuses(t, started, counterNames...)
		refuses(t, running, "txn", "bills")
		issued(t, running, made, 100, "orders", "halves") // from memory
		if n := len(d.Snapshot()); n != 0 {
			t.Errorf("it wrote %d registers after the loss", n)
		}
		synctest.Wait()
		for line, want := range map[string]int{"no range is fetched until the counter": 2, "could make no ids": 4} { // txn and bills, also before the loss
			if n := strings.Count(log.String(), line); n != want {
				t.Errorf("%d times %q is logged, want %d:\n%s", n, line, want, log.String())
			}
		}
		raisedTo(t, d, 400) // less than the running server knows
		time.Sleep(time.Minute)
		refuses(t, running, "txn", "bills")
		raisedTo(t, d, 5000)
		time.Sleep(2 * time.Second)
		issued(t, started, made, 5000, counterNames...)
		issued(t, running, made, 5000, counterNames...)
	})
}
