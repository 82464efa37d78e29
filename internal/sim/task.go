package sim

import (
	"context"
	"errors"
	"iter"
)

// A task is code of a process that runs until it waits, like a goroutine of the real program. It runs
// on one of the world's coroutines.
type task struct {
	m  *machine
	do func()
	on *coroutine // nil: it has not started

	turn   uint64 // counts its waits: wake-ups for an earlier wait are void
	ctx    context.Context
	done   <-chan struct{}
	ended  bool
	loose  bool // it holds no lock at its next clock reading
	killed bool
}

// errKilled ends a task of a process that crashed, as a panic.
var errKilled = errors.New("the process is gone")

// spawn starts a task; it runs when its time comes.
func (m *machine) spawn(do func()) {
	t := &task{m: m, do: do}
	m.tasks = append(m.tasks, t)
	m.w.events.push(event{at: m.w.now, task: t})
}

// run runs the task to its end.
func (t *task) run() {
	defer func() {
		t.ended = true
		if cause := recover(); cause != nil && cause != any(errKilled) {
			panic(cause)
		}
	}()
	t.do()
}

// wait lets other tasks run until the task is woken: at a time, by the end of ctx, or because done is
// closed.
func (t *task) wait(ctx context.Context, done <-chan struct{}) {
	t.turn++
	t.ctx, t.done = ctx, done
	if !t.killed {
		t.on.park(struct{}{})
	}
	if t.killed {
		panic(errKilled)
	}
	t.ctx, t.done = nil, nil
}

// A coroutine runs one task after another: a new coroutine would have to grow its stack first.
type coroutine struct {
	task *task
	next func() (struct{}, bool)
	stop func()
	park func(struct{}) bool
}

// begin assigns a coroutine to the task.
func (w *world) begin(t *task) {
	if last := len(w.idle) - 1; last >= 0 {
		t.on, w.idle = w.idle[last], w.idle[:last]
		t.on.task = t
		return
	}
	c := &coroutine{task: t}
	t.on = c
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		for c.park = yield; ; {
			c.task.run()
			w.idle = append(w.idle, c)
			if !yield(struct{}{}) {
				return
			}
		}
	})
}

// at schedules a wake-up at a time, unless the task wakes before.
func (t *task) at(at int64) { t.m.w.events.push(event{at: at, task: t, turn: t.turn + 1}) }

// wake continues the task, unless its machine stands still.
func (t *task) wake() {
	m := t.m
	if t.ended || t.killed {
		return
	}
	if m.frozen > m.w.now {
		at := m.frozen
		if t != m.thawed { // the task frozen in the middle of a step finishes that step first
			at += 1 + m.w.latencies.Int64N(1000)
		}
		m.w.events.push(event{at: at, task: t, turn: t.turn})
		return
	}
	before := m.w.running
	m.w.running = t
	if t.on == nil {
		m.w.begin(t)
	}
	t.on.next()
	m.w.running = before
	m.notice()
}

// notice wakes tasks whose context has ended or whose channel is closed.
func (m *machine) notice() {
	alive := m.tasks[:0]
	for _, t := range m.tasks {
		if t.ended {
			continue
		}
		alive = append(alive, t)
		if !t.ready() {
			continue
		}
		t.ctx, t.done = nil, nil // only once
		m.w.events.push(event{at: m.w.now + m.w.latencies.Int64N(20_000), task: t, turn: t.turn})
	}
	clear(m.tasks[len(alive):])
	m.tasks = alive
}

func (t *task) ready() bool {
	if t.done != nil {
		select {
		case <-t.done:
			return true
		default:
		}
	}
	return t.ctx != nil && t.ctx.Done() != nil && t.ctx.Err() != nil
}

// kill ends all tasks of the machine at their present point, like a crash.
func (m *machine) kill() {
	for _, t := range m.tasks {
		t.killed = true
	}
	for _, t := range m.tasks {
		if t.on != nil && !t.ended {
			t.on.next()
		}
	}
	m.tasks = nil
}
