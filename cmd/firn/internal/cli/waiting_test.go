package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func TestACommandSaysWhatItWaitsForAlsoWithoutATerminal(t *testing.T) {
	var flags generatorFlags
	flags.add(&cobra.Command{}, time.Second)
	var stderr bytes.Buffer
	cfg, err := flags.config(&stderr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log.Info("waiting for holders", "for", 12*time.Second, "because", "the pool is new")
	cfg.Log.Info("worker leased", "worker", 7)
	cfg.Log.Warn("worker lost", "worker", 7)
	if got, want := stderr.String(), "firn: waiting for holders, for 12s, because the pool is new\nfirn: worker lost, worker 7\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A shared store has the pools of several machines: a new one has a grace.
type shared struct{ store.Store }

func (shared) Traits() store.Traits { return store.Traits{} }

// A writeThen is a writer that does something after each write.
type writeThen struct {
	bytes.Buffer
	then func()
}

func (w *writeThen) Write(text []byte) (int, error) {
	defer w.then()
	return w.Buffer.Write(text)
}

func TestACommandSaysThatItWaitsForTheGraceOfANewPool(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := writeThen{then: cancel}
	var flags generatorFlags
	flags.add(&cobra.Command{}, time.Second)
	cfg, err := flags.config(&stderr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = shared{memstore.New(nil)}
	l, err := lease.Open(ctx, cfg)
	if err == nil {
		err = l.Close(t.Context())
	}
	const want = "firn: waiting before a worker is granted, pool default, for 12s, because the pool is new, or its store may have forgotten holders\n"
	if got := stderr.String(); got != want || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, and it says %q, want %q", err, got, want)
	}
}
