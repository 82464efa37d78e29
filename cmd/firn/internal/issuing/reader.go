package issuing

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// A Reader answers, for one protocol, requests that issue no ids. It counts only those that fail.
type Reader struct{ front *Front }

// Reader returns the reader of the protocol.
func (f *Front) Reader() Reader { return Reader{f} }

// State returns the state of a namespace that the caller may use.
func (r Reader) State(caller *access.Caller, name string) (State, error) {
	f := r.front
	if err := f.Allow(caller, name); err != nil {
		return State{}, err
	}
	ns, err := f.service.find(name, false)
	if err != nil {
		return State{}, f.Refuse(err)
	}
	return ns.state(caller.Admin()), nil
}

// List returns the states of all namespaces that the caller may use, by name.
func (r Reader) List(caller *access.Caller) []State {
	states := []State{}
	now := r.front.service.now.Load()
	caller, err := r.front.current(now, caller, 1)
	if err != nil {
		return states // empty for a revoked caller
	}
	for _, name := range slices.Sorted(maps.Keys(now.namespaces)) {
		if caller.May(name) {
			states = append(states, now.namespaces[name].state(caller.Admin()))
		}
	}
	return states
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
