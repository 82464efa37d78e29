package issuing

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
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

// A DecodeRequest is an id to decode, with the namespace that issued it or a layout. All fields but ID may be empty.
type DecodeRequest struct {
	ID, Format          string
	Namespace           string
	Layout, Unit, Epoch string
}

// Decode decodes an id.
func (r Reader) Decode(caller *access.Caller, ask DecodeRequest) (decode.Result, error) {
	if ask.Namespace != "" {
		if err := r.front.Allow(caller, ask.Namespace); err != nil {
			return decode.Result{}, err
		}
	}
	result, err := r.decode(ask)
	if err != nil {
		return result, r.front.Refuse(err)
	}
	return result, nil
}

func (r Reader) decode(ask DecodeRequest) (decode.Result, error) {
	layout, err := r.layout(ask)
	if err != nil {
		return decode.Result{}, err
	}
	if err := decode.CheckFormat(ask.Format); err != nil {
		return decode.Result{}, failure.BadRequest("bad_format", "%v", err)
	}
	result, err := decode.Text(ask.ID, ask.Format, layout, time.Now())
	if err != nil {
		return decode.Result{}, failure.BadRequest("bad_id", "%v", err)
	}
	return result, nil
}

func (r Reader) layout(ask DecodeRequest) (layout firn.Layout, err error) {
	if ask.Namespace == "" {
		described := settings.Namespace{Pooled: settings.Pooled{Layout: ask.Layout}}
		if layout, err = decode.Layout(described.LayoutText(), ask.Unit, ask.Epoch); err != nil {
			return layout, failure.BadRequest("bad_layout", "%v", err)
		}
		return layout, nil
	}
	if ask.Layout != "" || ask.Unit != "" || ask.Epoch != "" {
		return layout, failure.BadRequest("bad_request", "give a namespace, or a layout with unit and epoch, not both")
	}
	ns, err := r.front.service.find(ask.Namespace, false)
	if err != nil {
		return layout, err
	}
	layout, ok := ns.Layout()
	if !ok {
		return layout, failure.BadRequest("bad_request", "namespace %s, of kind %s, has no layout to decode by: only snowflake and serial have one, without a veil", ns.name, ns.Kind())
	}
	return layout, nil
}
