package issuing

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// watchEvery is the time between two looks at a counter, that of a lease between two at its slot.
const watchEvery = 3 * time.Second

// watchAtOnce bounds how many counters are looked at together.
const watchAtOnce = 16

// counted is a base with a counter in the store.
type counted interface {
	// compare raises the counter if the store has less of it than this process has had.
	compare(ctx context.Context) error
}

func (s *segments) compare(ctx context.Context) error  { return s.name.Look(ctx) }
func (s *sequences) compare(ctx context.Context) error { return s.one.Look(ctx) }

func (s *businessNumbers) compare(ctx context.Context) error { return s.counter.compare(ctx) }

// A watch looks at the counter that moved last. If the store has less of that, or of anything else that this process
// knows, it was wiped or set back, and may have less of all: all are raised. So a server that starts later begins above
// them, although those that run need no range for many minutes.
type watch struct {
	service  *Service
	known    map[string]int64 // the greatest id that the process has had, by namespace
	latest   string           // the namespace whose counter moved last
	setBacks int64            // counted by the previous look
	suspect  bool             // not all counters could be looked at since the store had less of one
}

// watch looks until ctx ends.
func (s *Service) watch(ctx context.Context) {
	w := watch{service: s, known: map[string]int64{}}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look makes one look, and those that follow from it.
func (w *watch) look(ctx context.Context) {
	all := w.counters()
	if latest := all[w.latest]; latest != nil {
		if err := latest.compare(ctx); lasting(err) {
			w.suspect, w.latest = true, "" // this one says nothing any more
		}
	}
	if n := w.service.allSetBacks(); n != w.setBacks {
		w.suspect, w.setBacks = true, n
		w.service.log.Warn("the store has less than this server knows: it looks at all counters", "counters", len(all))
	}
	if !w.suspect {
		return
	}
	var looks errgroup.Group
	looks.SetLimit(watchAtOnce)
	for name, c := range all {
		looks.Go(func() error {
			err := c.compare(ctx)
			if err != nil { // requests to it say so louder
				w.service.log.Debug("could not look at a counter", "namespace", name, "error", err)
			}
			if lasting(err) {
				return nil
			}
			return err
		})
	}
	w.suspect = looks.Wait() != nil
}

// lasting reports whether the next look would fail alike: somebody has made the counter another's, or it was closed.
func lasting(err error) bool {
	return errors.Is(err, store.ErrForeign) || errors.Is(err, store.ErrTaken) || errors.Is(err, segment.ErrStripe) || errors.Is(err, firn.ErrClosed)
}

// counters returns those of which the process has had ids, and notes which of them moved last, or any.
func (w *watch) counters() map[string]counted {
	all := map[string]counted{}
	for name, ns := range w.service.now.Load().namespaces {
		c, ok := ns.base.(counted)
		if !ok {
			continue
		}
		if high := w.service.memory.Of(name).High(); high > 0 {
			all[name] = c
			if high != w.known[name] {
				w.known[name], w.latest = high, name
			}
		}
	}
	for name := range all {
		if all[w.latest] == nil { // its namespace was removed, or says nothing any more
			w.latest = name
		}
	}
	return all
}

// allSetBacks returns how often the store had less of anything than the process knew.
func (s *Service) allSetBacks() (n int64) {
	for _, counter := range s.memory.SetBacks() {
		n += counter
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pool := range s.setBacks {
		n += pool
	}
	for _, p := range s.now.Load().pools {
		if l := p.lease.Load(); l != nil {
			n += l.State().SetBacks
		}
	}
	return n
}
