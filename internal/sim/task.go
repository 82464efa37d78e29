package sim

import (
	"context"
	"errors"
	"iter"
)

// A task is code of a process that runs until it waits: a goroutine of the real
// program. It is a coroutine of the world's.
type task struct {
	m    *machine
	name string
	next func() (struct{}, bool)
	stop func()
	park func(struct{}) bool

	turn   uint64 // counts the times it has waited: wakes for an earlier one are void
	ctx    context.Context
	done   <-chan struct{}
	ended  bool
	loose  bool // the next clock reading is made without a lock held
	killed bool
}

// errKilled ends a task of a process that crashed, as a panic.
var errKilled = errors.New("the process is gone")

// spawn starts a task; it runs when its time comes.
func (m *machine) spawn(name string, do func()) {
	t := &task{m: m, name: name}
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
	m.tasks = append(m.tasks, t)
	m.w.events.push(event{at: m.w.now, task: t})
}

// wait lets others go on until the task is woken: at a time, by the end of ctx,
// or since done is closed.
func (t *task) wait(ctx context.Context, done <-chan struct{}) {
	t.turn++
	t.ctx, t.done = ctx, done
	if t.killed || !t.park(struct{}{}) {
		t.killed = true
		panic(errKilled)
	}
	t.ctx, t.done = nil, nil
}

// at has the task woken at a time, unless it is woken before.
func (t *task) at(at int64) { t.m.w.events.push(event{at: at, task: t, turn: t.turn + 1}) }

// wake goes on with the task, unless its machine stands still.
func (t *task) wake() {
	m := t.m
	if t.ended || t.killed {
		return
	}
	if m.frozen > m.w.now {
		at := m.frozen
		if t != m.thawed { // who stood still in the middle of a step ends that first
			at += 1 + m.w.latencies.Int64N(1000)
		}
		m.w.events.push(event{at: at, task: t, turn: t.turn})
		return
	}
	before := m.w.running
	m.w.running = t
	t.next()
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
		t.ctx, t.done = nil, nil // once
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

// kill ends all tasks of the machine where they are, as a crash does.
func (m *machine) kill() {
	for _, t := range m.tasks {
		t.killed = true
	}
	for _, t := range m.tasks {
		t.stop()
	}
	m.tasks = nil
}
