package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn/bench/internal/ledger"
	"github.com/firn-id/firn/bench/internal/network"
)

// A world is a store, the processes that issue ids over it, and the ids received from them.
type world struct {
	firn    string // the binary
	dir     string
	turn    *sync.Mutex // held while faults are injected
	store   *backend
	net     *network.Network
	issuers []*issuer

	began    time.Time
	mark     atomic.Uint32 // the present fault: its index among faults, from 1
	silence  *silence
	done     []atomic.Int64 // how often each fault was
	ids      atomic.Int64
	refusals atomic.Int64 // calls that failed
	stuck    atomic.Int64 // starts that did not finish
	log      logger

	comers sync.RWMutex // each firn next holds a read lock

	mu      sync.Mutex
	files   map[string][]string // of each namespace
	writers []*ledger.Writer
}

// serverCount is the number of firn serve processes. At most two have a fault at a time, so one never has.
const serverCount = 3

// now returns the time since the start, by the monotonic clock.
func (w *world) now() time.Duration { return time.Since(w.began) }

// ledger creates a file for the ids that a caller receives of a namespace.
func (w *world) ledger(namespace, name string) (*ledger.Writer, error) {
	path := filepath.Join(w.dir, namespace+"."+name)
	out, err := ledger.Create(path)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[namespace] = append(w.files[namespace], path)
	w.writers = append(w.writers, out)
	return out, nil
}

// receive records the ids of a call.
func (w *world) receive(namespace string, out *ledger.Writer, asked time.Duration, runs ledger.Runs) error {
	if len(runs) == 0 {
		return nil
	}
	mark := w.mark.Load()
	w.silence.arrived(mark, namespace, time.Now())
	w.ids.Add(runs.Count())
	return out.Add(ledger.Batch{Asked: asked, Answered: w.now(), Mark: mark, Runs: runs})
}

// play runs processes over a store and injects faults for a time.
func (w *world) play(ctx context.Context, length time.Duration, p plan) (err error) {
	defer func() {
		for _, out := range w.writers {
			err = errors.Join(err, out.Close())
		}
	}()
	if err := w.startIssuers(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.endIssuers()) }()
	w.turn.Lock()
	defer w.turn.Unlock()
	runners, err := w.runners(p.rng(0))
	if err != nil {
		return err
	}
	until, stop := context.WithCancel(ctx)
	defer stop()
	callers, until := errgroup.WithContext(until)
	for _, f := range runners {
		callers.Go(func() error { return f(until) })
	}
	err = w.hurt(until, length, p)
	stop()
	w.net.Block(nil)
	return errors.Join(err, callers.Wait(), context.Cause(ctx)) // the last if it was interrupted
}

// hurt injects one fault after the other.
func (w *world) hurt(ctx context.Context, length time.Duration, p plan) error {
	for n, end := 1, time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; n++ {
		s := p.step(w, n)
		rest(ctx, s.pause)
		if err := w.do(s, n); err != nil {
			return err
		}
		if err := w.revive(); err != nil {
			return err
		}
	}
	return nil
}

// revive starts processes that did not restart. Failing twice in a row is an error.
func (w *world) revive() (err error) {
	for _, i := range w.issuers {
		if !i.up.Load() {
			err = errors.Join(err, i.start(0))
		}
	}
	return err
}

// runners returns the functions of all callers.
func (w *world) runners(rng *rand.Rand) (all []func(context.Context) error, err error) {
	streams := generated
	if !w.store.forgets {
		streams = append(streams[:len(streams):len(streams)], counted...)
	}
	for _, i := range w.issuers {
		for _, s := range streams {
			for n := range s.callers {
				c, err := w.newCaller(i, s, n)
				if err != nil {
					return nil, err
				}
				all = append(all, c.run)
			}
		}
	}
	add := func(namespace string, most int, args ...string) {
		c, failed := w.newComer(namespace, most, rand.New(rand.NewPCG(rng.Uint64(), 0)), args...)
		if failed != nil {
			err = errors.Join(err, failed)
			return
		}
		all = append(all, c.run)
	}
	add("steady", 100_000, "--pool", "steady", "--layout", layout)
	add("wall", 50_000, "--pool", "wall", "--layout", layout, "--clock", "wall")
	if !w.store.forgets {
		add("sequence", 100, "--kind", "sequence", "--name", "sequence")
		add("segment", 5_000, "--kind", "segment", "--name", "segment")
	}
	return all, err
}

func (w *world) startIssuers() error {
	var group errgroup.Group
	for n := range serverCount {
		i, err := newIssuer(fmt.Sprintf("server-%d", n+1), w.firn, w.dir, w.store, w.net)
		if err != nil {
			return err
		}
		w.issuers = append(w.issuers, i)
		group.Go(func() error { return i.start(0) })
	}
	return group.Wait()
}

func (w *world) endIssuers() (err error) {
	for _, i := range w.issuers {
		if i.up.Load() {
			if failed := i.leave(); failed != nil {
				w.log.printf("%s could not return everything: %v", i.name, failed)
			}
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(w.dir, i.name+".log"), []byte(i.Log.String()), 0o600))
	}
	return err
}

// A logger records events with their time.
type logger struct {
	mu    sync.Mutex
	began time.Time
	out   io.Writer
}

func (l *logger) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%8.3f  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}
