package lease

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// fleetSizes are how many processes the fleets have. docs/scale.md has those of -fleets 1000,2000,4000,8000,16000.
var fleetSizes = flag.String("fleets", "60,200", "sizes of the fleets of TestFleets")

// A center is a store on a network, one server that answers call after call: each takes a part of the
// server's time, and more for each record that it returns.
type center struct {
	mem  *memstore.Store
	mu   sync.Mutex
	idle time.Time // when all calls so far are answered

	calls, records atomic.Int64 // of newcomers
}

const (
	halfTrip  = 250 * time.Microsecond // to the store, or back
	aCall     = 10 * time.Microsecond  // of the server; Redis answers about 100,000 calls a second without pipelines
	perRecord = 200 * time.Nanosecond
)

// A wire is a process's way to the store.
type wire struct {
	*center
	joining atomic.Bool
	cut     atomic.Bool // the process has crashed: it sends nothing more
}

func (w *wire) Traits() store.Traits { return store.Traits{Clock: w} }

var errCut = fmt.Errorf("%w: the process has crashed", store.ErrUnavailable)

func exchange[T any](ctx context.Context, w *wire, call func() (T, int, error)) (value T, err error) {
	if w.cut.Load() {
		return value, errCut
	}
	time.Sleep(halfTrip)
	value, records, err := call()
	w.mu.Lock()
	now := time.Now()
	if w.idle.Before(now) {
		w.idle = now
	}
	w.idle = w.idle.Add(aCall + time.Duration(records)*perRecord)
	wait := w.idle.Sub(now)
	w.mu.Unlock()
	if w.joining.Load() {
		w.calls.Add(1)
		w.records.Add(int64(records))
	}
	time.Sleep(wait + halfTrip)
	if ctxErr := store.ContextError(ctx); ctxErr != nil {
		return value, ctxErr
	}
	return value, err
}

func (w *wire) Get(ctx context.Context, key string) (store.Entry, error) {
	return exchange(ctx, w, func() (store.Entry, int, error) { e, err := w.mem.Get(ctx, key); return e, 1, err })
}

func (w *wire) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	return exchange(ctx, w, func() (store.Entry, int, error) {
		e, err := w.mem.CompareAndSwap(ctx, key, old, value)
		return e, 1, err
	})
}

func (w *wire) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return exchange(ctx, w, func() ([]store.Entry, int, error) { l, err := w.mem.List(ctx, prefix); return l, len(l), err })
}

func (w *wire) Now(ctx context.Context) (time.Time, error) {
	return exchange(ctx, w, func() (time.Time, int, error) { return time.Now(), 0, nil })
}

func (w *wire) Close() error { return nil }

// A fleet is processes that each hold a worker of one pool.
type fleet struct {
	t       *testing.T
	center  *center
	layout  firn.Layout
	window  time.Duration
	centers int64 // datacenters that the processes are spread over

	mu        sync.Mutex
	processes []process
	took      []time.Duration // of newcomers until they had a worker
	slots     int             // the most that were counted
	started   int64
}

type process struct {
	lease *Lease
	wire  *wire
	of    [2]int64 // datacenter and worker at its start
}

// start starts n processes, all at once, and waits until each has a worker.
func (f *fleet) start(n int) {
	var all sync.WaitGroup
	for range n {
		f.started++
		datacenter := f.started % f.centers
		all.Go(func() { f.join(datacenter) })
	}
	all.Wait()
}

// join takes a worker. A process that finds the pool full is started again, after 1 s at first, later after
// up to 30 s, as supervisors do.
func (f *fleet) join(datacenter int64) {
	w, began, again := &wire{center: f.center}, time.Now(), time.Second
	w.joining.Store(true)
	cfg := Config{Store: w, Generator: firn.Config{Layout: f.layout, Datacenter: datacenter}, Window: f.window}
	l, err := Open(f.t.Context(), cfg)
	for full := (*FullError)(nil); errors.As(err, &full); l, err = Open(f.t.Context(), cfg) {
		time.Sleep(again/2 + time.Duration(rand.Int64N(int64(again))))
		again = min(2*again, 30*time.Second)
	}
	if err != nil {
		f.t.Error(err)
		return
	}
	w.joining.Store(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took = append(f.took, time.Since(began))
	f.processes = append(f.processes, process{l, w, [2]int64{datacenter, l.State().Worker}})
}

// end ends the oldest n processes at once: orderly, or as a crash does.
func (f *fleet) end(n int, crash bool) {
	f.mu.Lock()
	ending := f.processes[:n]
	f.processes = slices.Clone(f.processes[n:])
	f.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range ending {
		p.wire.cut.Store(crash)
		all.Go(func() {
			if err := p.lease.Close(context.Background()); err != nil && !crash {
				f.t.Error(err)
			}
		})
	}
	all.Wait()
}

// replace replaces all processes in twenty steps, 15 s apart. In each the new ones start first.
func (f *fleet) replace(crash bool) {
	n := len(f.processes)
	for i := range 20 {
		step := n*(i+1)/20 - n*i/20
		f.start(step)
		f.count()
		f.end(step, crash)
		time.Sleep(15 * time.Second)
	}
}

// count notes how many workers cannot be granted: they are held, or their holders crashed not long ago.
func (f *fleet) count() {
	pool, err := Inspect(context.Background(), f.center.mem, "default")
	if err != nil {
		f.t.Fatal(err)
	}
	n := 0
	for _, s := range pool.Slots {
		if !s.Free && s.Until.After(time.Now()) {
			n++
		}
	}
	f.slots = max(f.slots, n)
}

// begin forgets what newcomers have met so far.
func (f *fleet) begin() {
	f.took, f.slots = nil, 0
	f.center.calls.Store(0)
	f.center.records.Store(0)
}

// report prints a row of the table, and fails the test if two live processes have one worker, or if newcomers
// of a pool with room read more of it than they must.
func (f *fleet) report(story string, roomy bool) {
	f.count()
	slices.Sort(f.took)
	n := len(f.took)
	each := func(total *atomic.Int64) float64 { return float64(total.Load()) / float64(n) }
	calls, records := each(&f.center.calls), each(&f.center.records)
	_, _ = fmt.Fprintf(f.t.Output(), "| %s | %d | %v | %.2f | %.2f | %.2f | %.1f | %.0f | %d |\n", story, len(f.processes), f.window,
		f.took[n/2].Seconds(), f.took[n*99/100].Seconds(), f.took[n-1].Seconds(), calls, records, f.slots)
	if roomy && (calls > 15 || records > 1500) {
		f.t.Errorf("%s: a newcomer made %.1f calls and read %.0f records; at most 15 and 1,500 expected", story, calls, records)
	}
	seen := map[[2]int64]bool{}
	for _, p := range f.processes {
		if seen[p.of] || p.lease.State().Worker != p.of[1] {
			f.t.Errorf("worker %d of datacenter %d: two have it, or its holder lost it", p.of[1], p.of[0])
		}
		seen[p.of] = true
	}
}

// TestFleets plays fleets in virtual time: how long newcomers wait for a worker, and what that costs the store.
func TestFleets(t *testing.T) {
	stories := []struct {
		name    string
		layout  string
		centers int64
		tell    func(f *fleet, n int)
	}{
		{"all start at once", "41/0/16/6", 1, func(*fleet, int) {}},
		{"all start at once, in four datacenters", "41/2/14/6", 4, func(*fleet, int) {}},
		{"replaced in twenty steps", "41/0/16/6", 1, func(f *fleet, _ int) { f.begin(); f.replace(false) }},
		{"replaced in twenty steps, by crashes", "41/0/16/6", 1, func(f *fleet, _ int) { f.begin(); f.replace(true) }},
		{"a third crashes, and starts again", "41/0/16/6", 1, func(f *fleet, n int) { f.end(n/3, true); f.begin(); f.start(n / 3) }},
		{"all crash, and start again", "41/0/16/6", 1, func(f *fleet, n int) { f.end(n, true); f.begin(); f.start(n) }},
	}
	for text := range strings.SplitSeq(*fleetSizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, story := range stories {
			playFleet(t, n, 5*time.Minute, layout(story.layout), story.centers, func(f *fleet) {
				story.tell(f, n)
				f.report(story.name, true)
			})
		}
	}
}

// TestFleetsWithoutRoom: the workers suffice for all processes and a quarter more. All crash at once, so most
// of them wait until the fences have passed.
func TestFleetsWithoutRoom(t *testing.T) {
	for _, window := range []time.Duration{time.Minute, 5 * time.Minute} {
		playFleet(t, 52, window, layout("41/0/6/16"), 1, func(f *fleet) {
			f.end(52, true)
			f.begin()
			f.start(52)
			f.report("all crash, and start again, 64 workers", false)
			if most := f.took[len(f.took)-1]; most > window+2*defaultTolerance+45*time.Second {
				f.t.Errorf("the last had a worker after %v", most)
			}
		})
	}
}

// playFleet tells a story of n processes that have started.
func playFleet(t *testing.T, n int, window time.Duration, layout firn.Layout, centers int64, story func(f *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		f := &fleet{t: t, center: &center{mem: memstore.New(nil)}, layout: layout, window: window, centers: centers}
		f.start(1) // makes the pool, and waits for its grace
		f.begin()
		f.start(n - 1)
		story(f)
		f.end(len(f.processes), false)
	})
}
