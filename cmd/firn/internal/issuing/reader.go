package issuing

import (
	"context"
	"net/http"
	"slices"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A Reader answers, for one protocol, requests that issue no ids. It counts only those that fail.
type Reader struct{ front *Front }

// Reader returns the reader of the protocol.
func (f *Front) Reader() Reader { return Reader{f} }

// State returns the state of a namespace that the caller may use.
func (r Reader) State(caller *access.Caller, name string) (State, error) {
	f := r.front
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

const (
	// sizeOfState is about what a namespace occupies in a list and in its text.
	sizeOfState = 1 << 10
	// smallList is the number of namespaces of a list that is not charged to its client.
	smallList = 32
)

// List returns the states of all namespaces that the caller may use, by name. A long list counts as memory of the client
// until release, since each of thousands of connections could leave one unread.
func (r Reader) List(caller *access.Caller) (states []State, release func(), err error) {
	states, release = []State{}, func() {}
	now := r.front.service.now.Load()
	caller, err = r.front.current(now, caller, 1)
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
			return nil, release, r.front.Refuse(client.Refusal(share.Memory))
		}
		release = func() { client.Give(share.Memory, size) }
	}
	slices.Sort(names)
	for _, name := range names {
		states = append(states, now.namespaces[name].state(caller))
	}
	return states, release, nil
}

// Slots returns the slots of a pool, as the store has them, to an administrator.
func (r Reader) Slots(ctx context.Context, caller *access.Caller, pool string) (Pool, error) {
	if err := r.admin(caller, "pools"); err != nil {
		return Pool{}, err
	}
	p, err := ReadPool(ctx, r.front.service.store, pool)
	if err != nil {
		return p, r.front.Refuse(err)
	}
	return p, nil
}

// Metrics returns an error unless the caller of a request may see the metrics.
func (r Reader) Metrics(request *http.Request) error {
	if r.front.service.now.Load().access.OpenMetrics() {
		return nil
	}
	caller, err := r.front.Caller(request)
	if err != nil {
		return err
	}
	return r.admin(caller, "metrics")
}

// admin returns an error unless the caller is an administrator.
func (r Reader) admin(caller *access.Caller, what string) error {
	caller, err := r.front.current(r.front.service.now.Load(), caller, 1)
	if err != nil {
		return err
	}
	if err := caller.CheckAdmin(what); err != nil {
		return r.front.denied(caller.Name(), caller.From(), what, 1, err)
	}
	return nil
}
