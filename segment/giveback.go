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
	left chan leftover // closed: it has all that there is to give back
	done chan struct{}

	mu      sync.Mutex // guards all below; never held while waiting
	workers int
	given   int   // names
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
	all := s.sorted()
	f := &farewell{all: s, to: to, left: make(chan leftover, len(all)), done: make(chan struct{})}
	for _, n := range all {
		if unused := n.stop(); unused.Count > 0 && ok {
			f.left <- leftover{n.name, unused}
		}
	}
	close(f.left)
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
		return fmt.Errorf("%w; unused ids of %d names stay unused", f.err, names-f.given)
	}
	return nil
}

func (f *farewell) run(ctx context.Context) {
	for l := range f.left {
		limited, cancel := turns.WithTimeout(ctx, f.all.cfg.Time, callTimeout)
		given, err := f.to.Return(limited, l.name, l.unused)
		cancel()
		f.note(given, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.workers--; f.workers == 0 {
		close(f.done)
	}
}

func (f *farewell) note(given bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if given {
		f.given++
	}
	if err != nil && f.err == nil {
		f.err = err
		for range f.left { // nobody tries the rest
		}
	}
}
