package turns

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Pool runs jobs in the background and can be waited for. Set the exported fields.
type Pool struct {
	Time any // of the caller, as for [Go]
	Most int // how many jobs may run at once; 0: all

	closed atomic.Bool // set with mu held

	mu      sync.Mutex // guards all below; never held while waiting
	queue   []func()
	running int
	idle    chan struct{} // closed when no job runs any more; nil unless a caller waits
}

// Go runs job as soon as fewer than Most jobs run. It returns false if the pool is closed.
func (p *Pool) Go(job func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return false
	}
	if p.Most > 0 && p.running == p.Most {
		p.queue = append(p.queue, job)
		return true
	}
	p.running++
	Go(p.Time, func() {
		for ; job != nil; job = p.next() {
			job()
		}
	})
	return true
}

// Close drops the jobs that have not begun and refuses new ones. False: it was already closed.
func (p *Pool) Close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = nil
	return !p.closed.Swap(true)
}

// Closed reports whether the pool is closed.
func (p *Pool) Closed() bool { return p.closed.Load() }

// Wait returns nil once nothing runs, or the cause of ctx if that ends first.
func (p *Pool) Wait(ctx context.Context) error {
	p.mu.Lock()
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.rest()
	p.mu.Unlock()
	return Wait(ctx, p.Time, idle)
}

// next returns the job to do next; nil ends the worker.
func (p *Pool) next() (job func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.running--
		p.rest()
		return nil
	}
	job, p.queue[0] = p.queue[0], nil
	p.queue = p.queue[1:]
	return job
}

// rest wakes the callers of Wait if no job runs. The caller holds mu.
func (p *Pool) rest() {
	if p.running == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}
