package register

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// A Memory holds the greatest id that a process has had of each counter of one store, so that it repeats none if the store is
// set back. Everything in the process that uses the same counters must share one, at the same time or one after another. The
// zero value is ready for use. Do not copy it. Its methods may be called concurrently.
type Memory struct {
	mu    sync.Mutex
	known map[string]*Known // by name
}

// Of returns what is known of a counter.
func (m *Memory) Of(name string) *Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.known[name]
	if k == nil {
		if m.known == nil {
			m.known = map[string]*Known{}
		}
		k = &Known{}
		m.known[name] = k
	}
	return k
}

// SetBacks returns how often each counter was found below what was known, without those that never were.
func (m *Memory) SetBacks() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]int64{}
	for name, k := range m.known {
		if n := k.SetBacks(); n > 0 {
			all[name] = n
		}
	}
	return all
}

// A Known is what a process knows of a counter. Whoever moves the counter does so between Enter and Leave, one at a time:
// then a counter below what is known was set back, and is not merely older than what another one has just read.
type Known struct {
	high     atomic.Int64
	setBacks atomic.Int64

	isBack bool           // the counter was found below high; only for who has entered, as the next
	back   store.Revision // of the record that was

	mu      sync.Mutex // guards all below; never held while waiting
	entered bool
	waiting []chan struct{} // those who wait to enter, in order
}

// Enter waits until nobody else has entered, or ctx ends. Time is that of the caller, who must call Leave.
func (k *Known) Enter(ctx context.Context, time any) error {
	k.mu.Lock()
	if !k.entered {
		k.entered = true
		k.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	k.waiting = append(k.waiting, turn)
	k.mu.Unlock()
	err := turns.Wait(ctx, time, turn)
	if err == nil {
		return nil
	}
	k.mu.Lock()
	i := slices.Index(k.waiting, turn)
	if i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
	}
	k.mu.Unlock()
	if i < 0 { // its turn came at the same moment
		k.Leave()
	}
	return turns.Ended(ctx, "wait for others of this process that use the counter", err)
}

// Leave lets the next one enter.
func (k *Known) Leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.waiting) == 0 {
		k.entered = false
		return
	}
	close(k.waiting[0])
	k.waiting = k.waiting[1:]
}

// High returns the greatest id that the process has had; 0 for none.
func (k *Known) High() int64 { return k.high.Load() }

// Had records that the process has had the ids up to last. Only who has entered may call it.
func (k *Known) Had(last int64) {
	if last >= k.high.Load() {
		k.high.Store(last)
		k.isBack = false
	}
}

// Lacks records that the ids from first to last, which were given back, are not among those. Only who has entered may call it.
func (k *Known) Lacks(first, last int64) {
	if k.high.Load() == last {
		k.high.Store(first - 1)
	}
}

// SetBack counts that the counter was found below what is known, in a record of a revision: once until the counter is above
// again. Only who has entered may call it.
func (k *Known) SetBack(found store.Revision) (first bool) {
	if k.isBack && k.back == found {
		return false
	}
	k.isBack, k.back = true, found
	k.setBacks.Add(1)
	return true
}

// SetBacks returns how often it was.
func (k *Known) SetBacks() int64 { return k.setBacks.Load() }
