package segment

import (
	"context"
	"fmt"
	"sync"

	"github.com/firn-id/firn/internal/turns"
)

// A farewell gives back what names leave unused, several at a time.
type farewell struct {
	all  *Segments
	to   Returner
	done chan struct{}

	mu      sync.Mutex // guards all below; never held while waiting
	left    []leftover
	workers int
	given   int // names
	failed  int
	err     error // the first
}

type leftover struct {
	name   string
	unused Range
}

// giveBack stops all names and gives back what they leave unused. After a
// failure the rest is not tried: the store is away, and there may be many.
func (s *Segments) giveBack(ctx context.Context) error {
	to, ok := s.source.(Returner)
	f := &farewell{all: s, to: to, done: make(chan struct{})}
	for n := range s.All() {
		if unused := n.stop(); unused.Count > 0 && ok {
			f.left = append(f.left, leftover{n.name, unused})
		}
	}
	names := len(f.left)
	if names == 0 {
		return nil
	}
	f.workers = min(names, s.cfg.Fetches)
	for range f.workers {
		turns.Go(s.cfg.Time, func() { f.run(ctx) })
	}
	// Each call ends with ctx, so this does too.
	if err := turns.Wait(context.WithoutCancel(ctx), s.cfg.Time, f.done); err != nil {
		return err
	}
	s.cfg.Log.Info("segments closed", "names", names, "given back", f.given)
	if f.err != nil {
		return fmt.Errorf("%w; unused ids of %d names stay unused", f.err, f.failed)
	}
	return nil
}

func (f *farewell) run(ctx context.Context) {
	for l, ok := f.next(); ok; l, ok = f.next() {
		limited, cancel := turns.WithTimeout(ctx, f.all.cfg.Time, callTimeout)
		given, err := f.to.Return(limited, l.name, l.unused)
		cancel()
		f.note(given, err)
	}
}

// next returns what to give back next, if anything.
func (f *farewell) next() (leftover, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		f.failed += len(f.left)
		f.left = nil
	}
	if len(f.left) == 0 {
		if f.workers--; f.workers == 0 {
			close(f.done)
		}
		return leftover{}, false
	}
	l := f.left[0]
	f.left = f.left[1:]
	return l, true
}

func (f *farewell) note(given bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case given:
		f.given++
	case err != nil:
		f.failed++
		if f.err == nil {
			f.err = err
		}
	}
}
