package issuing

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

const (
	// watchEvery is the time between two looks, that of a lease between two at its slot.
	watchEvery = 3 * time.Second
	// watchAtOnce is how many counters are looked at each time, and bounds how many at the same moment.
	watchAtOnce = 16
	// watchPatience bounds a look, as a lease's.
	watchPatience = 2 * time.Second
)

// counted is a base with a counter in the store.
type counted interface {
	// compare raises the counter, or returns a *[store.SetBackError] if it must exist, if the store has less of it than this
	// process has had.
	compare(ctx context.Context) error
}

func (s *segments) compare(ctx context.Context) error  { return s.name.Look(ctx) }
func (s *sequences) compare(ctx context.Context) error { return s.one.Look(ctx) }

func (s *businessNumbers) compare(ctx context.Context) error { return s.counter.compare(ctx) }

// A watch looks at the counters in turn, some each time: another server may have repaired those that both use, and not know
// of the others. Once the store has less of one, or of a worker, it was wiped or set back, and may have less of all: then the
// watch looks at all. So a server that starts later begins above them, although those that run need no range for many
// minutes. Counters that must exist are not raised: then it is the log that says so.
type watch struct {
	service  *Service
	after    string // the last namespace that was looked at
	setBacks int64  // counted by the previous look
	suspect  bool   // the store had less of something, and not all counters could be looked at since
	pause    int    // how many looks to make between two tries to look at all
	skip     int    // and before the next
}

// watch looks until ctx ends.
func (s *Service) watch(ctx context.Context) {
	w := watch{service: s}
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

// look makes the looks of one time, and those that follow from them.
func (w *watch) look(ctx context.Context) {
	all := w.counters()
	next, _ := slices.BinarySearch(all, w.after+"\x00")
	some := slices.Concat(all[next:], all[:next])
	some = some[:min(len(some), watchAtOnce)]
	if len(some) > 0 {
		w.after = some[len(some)-1]
	}
	failed := w.compare(ctx, some)
	if n := w.service.allSetBacks(); n != w.setBacks {
		if w.setBacks = n; !w.suspect {
			w.suspect, w.skip = true, 0
			w.service.log.Warn("the store has less than this server knows: it looks at all counters", "counters", len(all))
		}
	}
	switch {
	case !w.suspect, failed > 0 && failed == len(some): // the store is away
	case w.skip > 0:
		w.skip--
	case w.compare(ctx, all) > 0:
		w.pause = min(2*w.pause+1, maxPause)
		w.skip = w.pause
	default:
		w.suspect, w.pause, w.setBacks = false, 0, w.service.allSetBacks()
		w.service.log.Info("all counters were looked at", "counters", len(all))
	}
}

// maxPause is a minute.
const maxPause = int(time.Minute / watchEvery)

// compare looks at counters, and returns how many looks failed and may succeed later. It ends when too many do.
func (w *watch) compare(ctx context.Context, names []string) int {
	var looks errgroup.Group
	looks.SetLimit(watchAtOnce)
	var failed atomic.Int64
	namespaces := w.service.now.Load().namespaces
	for _, name := range names {
		ns := namespaces[name]
		if ns == nil || failed.Load() >= watchAtOnce { // removed meanwhile
			continue
		}
		c, ok := ns.base.(counted)
		if !ok {
			continue
		}
		looks.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, watchPatience)
			defer cancel()
			err := c.compare(limited)
			if err != nil { // requests to it say so louder
				w.service.log.Debug("could not look at a counter", "namespace", name, "error", err)
			}
			if err != nil && !lasting(err) {
				failed.Add(1)
			}
			return nil
		})
	}
	_ = looks.Wait() // no look returns an error
	return int(failed.Load())
}

// lasting reports whether the next look would fail alike: the counter must exist and was set back, somebody has made it
// another's, or it was closed.
func lasting(err error) bool {
	return errors.Is(err, store.ErrSetBack) || errors.Is(err, store.ErrForeign) || errors.Is(err, store.ErrTaken) || errors.Is(err, segment.ErrStripe) || errors.Is(err, firn.ErrClosed)
}

// counters returns the namespaces whose counter the process has had ids of, in order.
func (w *watch) counters() (names []string) {
	for name, ns := range w.service.now.Load().namespaces {
		if _, ok := ns.base.(counted); ok && w.service.memory.Of(name).High() > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
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
