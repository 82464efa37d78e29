package leases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

const (
	window = 2 * time.Second
	look   = 100 * time.Millisecond
	// tolerance is small because all clocks here are the same: a worker stays unused for twice the
	// tolerance after its fence.
	tolerance = time.Second
	// A strict pool needs windows of sixteen times the tolerance.
	strictTolerance = 200 * time.Millisecond
	strictWindow    = 4 * time.Second
	// pace is how often a process issues an id. It is less than a tick, so that two processes with the
	// same worker would issue equal ids.
	pace = 250 * time.Microsecond
)

// skewed is the system's time with a wall clock offset set by the test.
type skewed struct {
	firn.TimeSource
	offset atomic.Int64
}

func (s *skewed) Wall() time.Time {
	return s.TimeSource.Wall().Add(time.Duration(s.offset.Load()))
}

// A world has all processes of one pool, and their ids.
type world struct {
	t      *testing.T
	b      *backend
	pool   string
	strict bool

	mu        sync.Mutex
	processes []*process
}

// A process issues ids as fast as pace allows, with its own lease and its own connection to the
// store.
type process struct {
	lease *lease.Lease
	time  *skewed
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex // guards all fields below
	ids     []firn.ID
	errs    map[string]int
	slowest time.Duration
}

// twoWorkers is a layout with two workers, so that collisions are likely.
var twoWorkers = func() firn.Layout {
	l, err := firn.ParseLayout("41/0/1/12")
	if err != nil {
		panic(err)
	}
	return l
}()

func (w *world) config(s store.Store, clock *skewed) lease.Config {
	cfg := lease.Config{
		// All share one host name and process id, as containers may.
		Store: s, Pool: w.pool, Look: look, Host: "web", PID: 1, Tolerance: tolerance,
		Generator: firn.Config{
			Layout: twoWorkers, Time: clock, Start: firn.StartZero,
		},
		Window: w.window(),
	}
	if w.strict {
		cfg.Tolerance, cfg.Strict = strictTolerance, strictWindow+4*strictTolerance+50*time.Millisecond
	}
	return cfg
}

// try joins the pool, with a skewed clock; change may modify the settings.
func (w *world) try(offset time.Duration, change ...func(*lease.Config)) (*process, error) {
	return w.over(w.b.open(w.t), offset, change...)
}

func (w *world) over(s store.Store, offset time.Duration, change ...func(*lease.Config)) (*process, error) {
	p := &process{time: &skewed{TimeSource: firn.SystemTime()}, stop: make(chan struct{}), done: make(chan struct{}), errs: map[string]int{}}
	p.time.offset.Store(int64(offset))
	cfg := w.config(s, p.time)
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if p.lease, err = lease.Open(ctx, cfg); err != nil {
		return nil, err
	}
	go p.run()
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	return p, nil
}

func (w *world) start(change ...func(*lease.Config)) *process {
	w.t.Helper()
	p, err := w.try(0, change...)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (p *process) run() {
	defer close(p.done)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		begun := time.Now()
		id, err := p.lease.Next(context.Background())
		took := time.Since(begun)
		p.mu.Lock()
		p.slowest = max(p.slowest, took)
		if err != nil {
			p.errs[kind(err)]++
		} else {
			p.ids = append(p.ids, id)
		}
		p.mu.Unlock()
	}
}

// kind names the documented error that err is.
func kind(err error) string {
	for _, known := range []error{firn.ErrFence, firn.ErrClockBack, firn.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "undocumented: " + err.Error()
}

func (p *process) made() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ids)
}

func (p *process) failures() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	copied := map[string]int{}
	for name, n := range p.errs {
		copied[name] = n
	}
	return copied
}

// makes waits until a process has made n more ids.
func (w *world) makes(p *process, n int) {
	w.t.Helper()
	for deadline, want := time.Now().Add(30*time.Second), p.made()+n; p.made() < want; time.Sleep(look / 10) {
		if time.Now().After(deadline) {
			w.t.Fatalf("a process makes no ids: %v, %+v", p.failures(), p.lease.State())
		}
	}
}

// until waits for a condition that only needs time.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(look / 10) {
		if time.Now().After(deadline) {
			w.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// crash ends a process without a release: it issues no more ids, and its background work can no
// longer reach the store.
func (p *process) crash(s interface{ cut() }) {
	p.end()
	s.cut()
}

// end stops issuing ids.
func (p *process) end() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	<-p.done
}

// close ends a process regularly.
func (w *world) close(p *process) {
	p.end()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.lease.Close(ctx); err != nil && !errors.Is(err, errCut) {
		w.t.Errorf("close: %v", err)
	}
}

// count ends all processes and counts the duplicate ids, and the undocumented errors.
func (w *world) count() (ids, duplicates int) {
	w.mu.Lock()
	all := w.processes
	w.mu.Unlock()
	seen := map[firn.ID]bool{}
	for _, p := range all {
		w.close(p)
		for name := range p.failures() {
			if name[:min(len(name), 12)] == "undocumented" {
				w.t.Error(name)
			}
		}
		last := firn.ID(-1)
		for _, id := range p.ids {
			if seen[id] {
				duplicates++
			}
			seen[id] = true
			// Another worker's times may be earlier, and its number lower.
			if s := p.lease.State(); id < last && s.Losses == 0 && s.Switches == 0 {
				w.t.Errorf("a process issued %d after %d", id, last)
			}
			last = id
			ids++
		}
	}
	return ids, duplicates
}

// A line is a connection to a store that can be cut, as by a network partition of one process.
type line struct {
	store.Store
	gone atomic.Bool
}

var errCut = fmt.Errorf("%w: cut off", store.ErrUnavailable)

func (l *line) cut()  { l.gone.Store(true) }
func (l *line) mend() { l.gone.Store(false) }

func (l *line) Get(ctx context.Context, key string) (store.Entry, error) {
	if l.gone.Load() {
		return store.Entry{}, errCut
	}
	return l.Store.Get(ctx, key)
}

func (l *line) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if l.gone.Load() {
		return nil, errCut
	}
	return l.Store.List(ctx, prefix)
}

func (l *line) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if l.gone.Load() {
		return store.Entry{}, errCut
	}
	return l.Store.CompareAndSwap(ctx, key, old, value)
}

// Traits returns those of a store on another host.
func (l *line) Traits() store.Traits {
	if l.Store.Traits().Clock == nil {
		return store.Traits{}
	}
	return store.Traits{Clock: l}
}

func (l *line) Now(ctx context.Context) (time.Time, error) {
	if l.gone.Load() {
		return time.Time{}, errCut
	}
	return l.Store.Traits().Clock.Now(ctx)
}

// onLine opens a store behind a line.
func (b *backend) onLine(t *testing.T) (store.Store, *line) {
	l := &line{Store: b.open(t)}
	return l, l
}

// window is how far ahead the world's processes keep their fences.
func (w *world) window() time.Duration {
	if w.strict {
		return strictWindow
	}
	return window
}
