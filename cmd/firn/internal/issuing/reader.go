package issuing

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// This file answers requests that issue no ids. Only those that fail are counted.

// State returns the state of a namespace that the caller may use.
func (f *Front) State(caller *access.Caller, name string) (State, error) {
	caller, err := f.allow(f.service.now.Load(), caller, name, 1)
	if err != nil {
		return State{}, err
	}
	ns, err := f.service.look(name)
	if err != nil {
		return State{}, f.Refuse(err)
	}
	return ns.state(caller), nil
}

// Exists reports whether a namespace exists that the caller may use, or would be made on its first use. An error means
// that there is no such name, or that the caller may not use it.
func (f *Front) Exists(caller *access.Caller, name string) (bool, error) {
	now := f.service.now.Load()
	if _, err := f.allow(now, caller, name, 1); err != nil {
		return false, err
	}
	if now.namespaces[name] != nil {
		return true, nil
	}
	if err := settings.CheckName(name); err != nil {
		return false, f.Refuse(err)
	}
	return now.dynamic != nil, nil
}

const (
	// sizeOfState is about what a namespace occupies in a list and in its text.
	sizeOfState = 1 << 10
	// smallList is the number of namespaces of a list that is not charged to its client.
	smallList = 32
)

// List returns the states of all namespaces that the caller may use, by name. A long list counts as memory of the client
// until release, since each of thousands of connections could leave one unread.
func (f *Front) List(caller *access.Caller) (states []State, release func(), err error) {
	states, release = []State{}, func() {}
	now := f.service.now.Load()
	caller, err = f.current(now, caller, 1)
	if err != nil {
		return states, release, nil // empty for a revoked caller
	}
	var names []string
	for name := range now.namespaces {
		if caller.May(name) {
			names = append(names, name)
		}
	}
	if client, size := caller.Client(), len(names)*sizeOfState; len(names) > smallList {
		if !client.Take(share.Memory, size) {
			return nil, release, f.Refuse(client.Refusal(share.Memory))
		}
		release = func() { client.Give(share.Memory, size) }
	}
	slices.Sort(names)
	for _, name := range names {
		states = append(states, now.namespaces[name].state(caller))
	}
	return states, release, nil
}

// Slots returns the JSON of a [Pool] with its slots, as the store had them at most slotsLast ago, to an administrator.
// The text is shared: it must not be changed.
func (f *Front) Slots(ctx context.Context, caller *access.Caller, pool string) (text []byte, err error) {
	if err := f.admin(caller, "pools"); err != nil {
		return nil, err
	}
	if text, err = f.service.slots.of(ctx, f.service.store, pool); err != nil {
		return nil, f.Refuse(err)
	}
	return text, nil
}

// slotsLast is how long one reading of a pool serves all who ask for it: each browser that shows a pool asks each second,
// and it takes milliseconds to read 1,024 slots, and to write them.
const slotsLast = 500 * time.Millisecond

// latestSlots is the pool that was read last, as JSON.
type latestSlots struct {
	mu   sync.Mutex
	at   time.Time
	name string
	text []byte
}

// of returns a pool.
func (l *latestSlots) of(ctx context.Context, s store.Store, name string) ([]byte, error) {
	l.mu.Lock()
	text, known := l.text, l.name == name && time.Since(l.at) < slotsLast
	l.mu.Unlock()
	if known && text != nil {
		return text, nil
	}
	began := time.Now()
	pool, err := ReadPool(ctx, s, name)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(pool); err == nil {
		text = slices.Clip(text) // nobody appends in place
		l.keep(began, name, text)
	}
	return text, err
}

// keep keeps a pool as it was at a time or later, unless something newer is kept. A nil text makes the next caller read.
func (l *latestSlots) keep(at time.Time, name string, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.After(l.at) {
		l.at, l.name, l.text = at, name, text
	}
}

// releaseTries bounds the writes of a release whose holder writes at the same time, which it does every few minutes.
const releaseTries = 3

// Release takes a worker from its holder, for an administrator, and returns the slot as it is then. The fence stays, see
// [lease.Reclaim]. The audit log has it.
func (f *Front) Release(ctx context.Context, caller *access.Caller, pool string, datacenter, worker int64) (Slot, error) {
	if err := f.admin(caller, "pools"); err != nil {
		return Slot{}, err
	}
	s := f.service
	var taken lease.Slot
	err := store.ErrConflict
	for n := 0; n < releaseTries && errors.Is(err, store.ErrConflict); n++ {
		taken, err = lease.Reclaim(ctx, s.store, pool, datacenter, worker, time.Time{})
	}
	if errors.Is(err, store.ErrConflict) {
		err = failure.New(http.StatusServiceUnavailable, "store_unavailable", "the holder of worker %d wrote at the same time, %d times: try again", worker, releaseTries)
	}
	s.slots.keep(time.Now(), pool, nil) // all who ask from now on see it
	s.audit.Done("release worker", err, "who", caller.Name(), "from", caller.From(), "pool", pool, "datacenter", datacenter, "worker", worker)
	if err != nil {
		return Slot{}, f.Refuse(err)
	}
	return DescribeSlot(taken, 0, taken.At), nil
}

// Metrics returns an error unless the caller of a request may see the metrics.
func (f *Front) Metrics(request *http.Request) error {
	if f.service.now.Load().access.OpenMetrics() {
		return nil
	}
	caller, err := f.Caller(request)
	if err != nil {
		return err
	}
	return f.admin(caller, "metrics")
}

// admin returns an error unless the caller is an administrator.
func (f *Front) admin(caller *access.Caller, what string) error {
	caller, err := f.current(f.service.now.Load(), caller, 1)
	if err != nil {
		return err
	}
	if err := caller.CheckAdmin(what); err != nil {
		return f.denied(caller.Name(), caller.From(), what, 1, err)
	}
	return nil
}
