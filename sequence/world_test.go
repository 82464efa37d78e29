package sequence_test

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// A world is a number of processes in virtual time, over one store. One
// goroutine runs at a time and a seed decides which, so a history can be
// replayed.
type world struct {
	now    int64
	count  uint64
	events events
	random *rand.Rand
	store  *memstore.Store
	trip   time.Duration // the mean time of a call of the store
	chaos  bool          // calls of the store go wrong
	away   bool          // the store is
	hung   bool          // it answers nothing
	tasks  []*task
	active *task
}

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), trip: time.Millisecond}
	w.store = memstore.New(w.random.Uint64)
	return w
}

type event struct {
	at    int64
	count uint64
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].count < e[j].count
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now + int64(d), w.count, do})
}

// run lets things happen until nothing is left to.
func (w *world) run() {
	for len(w.events) > 0 {
		e, _ := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		w.notice()
	}
}

// some is a duration around a mean.
func (w *world) some(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(w.random.Int64N(int64(mean)))
}

// A task is a goroutine of the real program.
type task struct {
	p     *process
	next  func() (struct{}, bool)
	stop  func()
	park  func(struct{}) bool
	ready func() bool // nil while it runs, or is about to
	dead  bool
	ended bool
}

var errKilled = errors.New("the process is gone")

// A process is the time of a process, and owns its order of things.
type process struct {
	w    *world
	dead bool
}

// Go implements [turns.Scheduler].
func (p *process) Go(do func()) {
	t := &task{p: p}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.park = yield
		defer func() {
			t.ended = true
			if cause := recover(); cause != nil && cause != any(errKilled) {
				panic(cause)
			}
		}()
		do()
	})
	p.w.tasks = append(p.w.tasks, t)
	p.w.after(0, t.resume)
}

func (t *task) resume() {
	if t.ended || t.dead {
		return
	}
	before := t.p.w.active
	t.p.w.active = t
	t.next()
	t.p.w.active = before
}

// until parks the running task until it is ready.
func (w *world) until(ready func() bool) {
	t := w.active
	t.ready = ready
	if t.dead || !t.park(struct{}{}) {
		t.dead = true
		panic(errKilled)
	}
}

// notice goes on with the tasks that are ready, in an order by chance.
func (w *world) notice() {
	alive := w.tasks[:0]
	for _, t := range w.tasks {
		if t.ended || t.dead {
			continue
		}
		alive = append(alive, t)
		if t.ready != nil && t.ready() {
			t.ready = nil
			w.after(time.Duration(w.random.Int64N(20_000)), t.resume)
		}
	}
	clear(w.tasks[len(alive):])
	w.tasks = alive
}

// kill ends a process where it stands.
func (p *process) kill() {
	p.dead = true
	for _, t := range p.w.tasks {
		if t.p == p && !t.ended {
			t.dead = true
			t.stop()
		}
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return done != nil
	default:
		return false
	}
}

// Wait implements [turns.Scheduler].
func (p *process) Wait(ctx context.Context, done <-chan struct{}) error {
	p.w.until(func() bool { return closed(done) || ctx.Err() != nil })
	if closed(done) {
		return nil
	}
	return context.Cause(ctx)
}

// WithTimeout implements [turns.Scheduler].
func (p *process) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.w.after(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { cancel(context.Canceled) }
}

// Sleep implements [firn.TimeSource].
func (p *process) Sleep(ctx context.Context, d time.Duration) error {
	over := make(chan struct{})
	p.w.after(d, func() { close(over) })
	return p.Wait(ctx, over)
}

// Wall implements [firn.TimeSource].
func (p *process) Wall() time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(p.w.now))
}

// Monotonic implements [firn.TimeSource].
func (p *process) Monotonic() time.Duration { return time.Duration(p.w.now) }

// A client is the store as a process sees it, over a network.
type client struct {
	*memstore.Store
	p     *process
	calls int
	away  time.Duration // how much longer each way takes
}

// Get implements [store.Store].
func (c *client) Get(ctx context.Context, key string) (store.Entry, error) {
	return travel(ctx, c, func() (store.Entry, error) { return c.Store.Get(context.Background(), key) })
}

// CompareAndSwap implements [store.Store].
func (c *client) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	return travel(ctx, c, func() (store.Entry, error) {
		return c.Store.CompareAndSwap(context.Background(), key, old, value)
	})
}

// travel has a call go to the store and its answer come back. What goes wrong
// is that either is lost, or that the call arrives long after its caller got the answer
// so.
func travel[T any](ctx context.Context, c *client, do func() (T, error)) (value T, err error) {
	w, zero := c.p.w, *new(T)
	c.calls++
	var answer error
	back, lost := make(chan struct{}), make(chan struct{})
	arrive := func() {
		value, answer = do()
		w.after(w.some(w.trip/2)+c.away, func() { close(back) })
	}
	there, fault := w.some(w.trip/2)+c.away, 0
	if w.chaos {
		fault = w.random.IntN(24)
	}
	if w.away {
		return zero, fmt.Errorf("connect: %w", store.ErrUnavailable)
	}
	if w.hung {
		fault = 5
	}
	switch fault {
	case 1: // the call is lost, and that is noticed
		w.after(there, func() { close(lost) })
	case 2: // the answer is
		w.after(there, func() { _, _ = do(); close(lost) })
	case 3: // it arrives late
		w.after(there, func() { close(lost) })
		w.after(there+w.some(20*w.trip), func() { _, _ = do() })
	case 4: // it is slow
		w.after(w.some(20*w.trip), arrive)
	case 5: // it hangs
	default:
		w.after(there, arrive)
	}
	w.until(func() bool { return closed(back) || closed(lost) || ctx.Err() != nil })
	switch {
	case closed(back):
		return value, answer
	case closed(lost):
		return zero, storetest.ErrAnswerLost
	default:
		return zero, context.Cause(ctx)
	}
}
