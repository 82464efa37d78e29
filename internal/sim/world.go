package sim

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
)

// noon is when every history begins.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A world is one history. It runs on one goroutine at a time: everything that happens is an event in
// its queue or code that runs until it waits.
type world struct {
	Options
	plan  plan
	trace *trace

	now       int64 // true time, in ns since noon; no process sees it
	events    queue
	steps     int
	machines  []*machine
	store     *register
	oracle    oracle
	authority authority
	quiet     bool // the faults are over
	ending    bool // no newcomers any more
	lives     uint64

	latencies, choices, library, tears *rand.Rand
	faults                             faults
	cover                              cover
	running                            *task
	idle                               []*coroutine
}

// The streams of random numbers derived from a seed: one for each purpose, so that leaving one fault
// out changes nothing else.
const (
	streamPlan = iota + 1
	streamLatency
	streamChoices
	streamLibrary
	streamFaults
	streamServers
	streamChange
	streamCorpus
	streamLag
	streamTears
	streamCrowd
	streamLent
)

func stream(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

// The number of steps of a history before its faults end.
const (
	usualSteps = 10_000
	smallSteps = 3_000
)

// Run plays one history and returns its result.
func Run(o Options) Result {
	w := &world{Options: o.filled()}
	w.trace = newTrace(w)
	w.cover.w = w
	w.plan = draw(w.Options)
	if w.Steps == 0 {
		w.Steps = usualSteps
		if w.plan.small {
			w.Steps = smallSteps
		}
	}
	seed := o.Seed + w.plan.again
	w.latencies, w.choices, w.library = stream(seed, streamLatency), stream(seed, streamChoices), stream(seed, streamLibrary)
	w.tears = stream(seed, streamTears)
	w.store = newRegister(w)
	w.oracle = newOracle(w)
	w.authority = authority{}
	w.trace.say(nil, "%v", &w.plan)
	for i := range w.plan.machines {
		m := newMachine(w, i)
		w.machines = append(w.machines, m)
		if i < w.plan.machines-w.plan.late {
			w.after(w.latencies.Int64N(int64(3*time.Second)+1), func() { m.begin() })
		}
	}
	w.faults.begin(w)
	w.play(w.Steps)
	if !w.oracle.stopped() {
		w.settle()
	}
	for _, m := range w.machines {
		m.kill()
	}
	for _, c := range w.idle {
		c.stop()
	}
	return w.oracle.result()
}

// play runs events until this many steps are done, or a finding ends it.
func (w *world) play(steps int) {
	for end := w.steps + steps; w.steps < end && !w.oracle.stopped(); {
		if !w.step() {
			w.oracle.find("progress", nil, "nothing is left to happen")
			return
		}
	}
}

// pass lets this much time go by.
func (w *world) pass(d time.Duration) {
	over := false
	w.after(int64(d), func() { over = true })
	for !over && !w.oracle.stopped() {
		w.step()
	}
}

func (w *world) step() bool {
	e, ok := w.events.pop()
	if !ok {
		return false
	}
	w.now = max(w.now, e.at)
	w.steps++
	switch {
	case e.task == nil:
		e.do()
	case e.task.turn == e.turn:
		e.task.wake()
	default:
		w.steps-- // the task continued earlier, for another reason
	}
	return true
}

// settle ends the faults and checks for progress: no process is stuck for ever, and no slot is lost
// for ever.
func (w *world) settle() {
	w.quiet = true
	w.trace.say(nil, "the faults end; clocks are put right")
	w.store.mend()
	for _, m := range w.machines {
		m.mend()
	}
	p := &w.plan
	w.pass(3*p.window + 2*p.strict + 2*p.grace() + 2*maxPause + time.Minute)
	before := make([]int, len(w.machines))
	for i, m := range w.machines {
		before[i] = m.made
	}
	w.pass(p.window + p.strict + 2*p.grace() + 2*time.Minute)
	for i, m := range w.machines {
		if m.made == before[i] && !w.oracle.stopped() {
			w.oracle.stuck(m)
		}
	}
	w.ending = true
	for _, m := range w.machines {
		m.retire()
	}
	w.pass(3*p.window + 2*p.strict + 2*p.grace() + time.Minute)
	if !w.oracle.stopped() {
		w.machines[0].takeAll()
	}
}

// restAtEnd is how long callers rest at least once the faults are over.
const restAtEnd = 400 * time.Millisecond

// think is how long callers rest between calls: longer once the faults are over, because only progress
// is checked then.
func (w *world) think() time.Duration {
	if w.quiet {
		return min(max(8*w.plan.think, restAtEnd), 5*time.Second)
	}
	return w.plan.think
}

// after schedules do some time from now.
func (w *world) after(d int64, do func()) { w.events.push(event{at: w.now + max(d, 0), do: do}) }

// seldom draws a duration with a mean: mostly shorter, sometimes much longer.
func seldom(r *rand.Rand, mean time.Duration) int64 {
	return int64(min(float64(mean)*r.ExpFloat64(), math.MaxInt64/4))
}

// trueTick is the tick of the true time, even after the end of the layout.
func (w *world) trueTick() firn.Tick { return w.tickAt(w.now) }

func (w *world) tickAt(now int64) firn.Tick {
	l := &w.plan.layout
	return firn.Tick((noon.UnixNano() - l.Epoch().UnixNano() + now) / int64(l.Unit()))
}

// An event happens at a time: a task continues, or do runs.
type event struct {
	at    int64
	order uint64
	task  *task
	turn  uint64
	do    func()
}

// A queue returns events in order of time, and simultaneous ones in order of arrival.
type queue struct {
	heap  heapOfEvents
	order uint64
}

func (q *queue) push(e event) {
	q.order++
	e.order = q.order
	heap.Push(&q.heap, &e)
}

func (q *queue) pop() (*event, bool) {
	if len(q.heap) == 0 {
		return nil, false
	}
	e, ok := heap.Pop(&q.heap).(*event)
	return e, ok
}

// heapOfEvents implements [heap.Interface].
type heapOfEvents []*event

func (h heapOfEvents) Len() int      { return len(h) }
func (h heapOfEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h heapOfEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}

func (h *heapOfEvents) Push(x any) {
	e, _ := x.(*event)
	*h = append(*h, e)
}

func (h *heapOfEvents) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
