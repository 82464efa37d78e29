package issuing

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A Protocol is a protocol of requests; it is a label of metrics.
type Protocol uint8

// The protocols.
const (
	HTTP Protocol = iota
	RPC
	RESP
	Leaf
	TinyID
	CosID
	protocols // the number of protocols
)

func (p Protocol) String() string {
	return [...]string{"http", "rpc", "resp", "leaf", "tinyid", "cosid"}[p]
}

// A Front is the service as one protocol uses it. It counts requests and their errors; the
// protocol measures how long they take and reports it with Observe. Errors are or wrap
// ones that [failure.Of] knows.
type Front struct {
	service  *Service
	protocol Protocol
	seconds  prometheus.Observer
}

// Front returns the service for a protocol.
func (s *Service) Front(p Protocol) *Front {
	return &Front{service: s, protocol: p, seconds: s.metrics.seconds.WithLabelValues(p.String())}
}

// Observe records how long a request took, or several that came together.
func (f *Front) Observe(d time.Duration) { f.seconds.Observe(d.Seconds()) }

// Refuse counts a request that failed before it reached a namespace, such as an unreadable
// one, and returns the failure for the client.
func (f *Front) Refuse(err error) *failure.Failure { return f.failed("", err) }

// Answered counts a request without a namespace, by the HTTP status of its answer. Denied
// requests are counted already.
func (f *Front) Answered(status int) {
	code := "ok"
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return
	case status == http.StatusMethodNotAllowed:
		code = "method_not_allowed"
	case status == http.StatusTooManyRequests:
		code = "rate_limited"
	case status == http.StatusServiceUnavailable:
		code = "store_unavailable"
	case status >= http.StatusInternalServerError:
		code = "internal"
	case status >= http.StatusBadRequest:
		code = "bad_request"
	}
	f.service.metrics.requests.WithLabelValues("", f.protocol.String(), code).Inc()
}

func (f *Front) failed(namespace string, err error) *failure.Failure {
	return f.failedAll(namespace, 1, err)
}

func (f *Front) failedAll(namespace string, requests int, err error) *failure.Failure {
	failed := failure.Of(err)
	f.service.metrics.requests.WithLabelValues(namespace, f.protocol.String(), failed.Code).Add(float64(requests))
	return failed
}

// Find returns the namespace of that name if the caller may use it. It makes the namespace
// where namespaces are made on first use.
func (f *Front) Find(caller *access.Caller, name string) (*Namespace, error) {
	if err := f.may(caller, name); err != nil {
		return nil, err
	}
	ns, err := f.service.find(name, true)
	if err != nil {
		return nil, f.failed("", err)
	}
	return ns, nil
}

// Issue fills b with count ids of a namespace that Find returned for the caller: all of them,
// or it returns an error. Ids are numbers or texts, see [Namespace.Numeric]. The caller releases b.
func (f *Front) Issue(ctx context.Context, caller *access.Caller, ns *Namespace, count int, b *Batch) error {
	f.traced(ctx, ns, count)
	if err := f.checkCount(count); err != nil {
		return f.failed(ns.name, err)
	}
	err := f.serve(caller, ns, 1, count, func(ns *Namespace) (int, error) {
		if err := f.service.room.hold(ctx, ns, count, b); err != nil {
			return 0, err
		}
		return count, ns.take(ctx, count, b)
	})
	if err != nil {
		b.Release()
	}
	return err
}

// traced adds the namespace and the count to the span of a request.
func (f *Front) traced(ctx context.Context, ns *Namespace, count int) {
	if f.service.traced {
		trace.SpanFromContext(ctx).SetAttributes(attribute.String("firn.namespace", ns.name), attribute.Int("firn.count", count))
	}
}

// Limit returns how many ids a request may ask for.
func (f *Front) Limit() int { return f.service.now.Load().limits.MaxBatch() }

// MaxBody returns how many bytes the body of a request may have.
func (f *Front) MaxBody() int { return f.service.now.Load().limits.MaxBody() }

// MaxConnections returns how many connections a listener may have.
func (f *Front) MaxConnections() int { return f.service.now.Load().limits.MaxConnections() }

func (f *Front) checkCount(count int) error {
	limit := f.Limit()
	switch {
	case count < 1:
		return failure.BadRequest("bad_count", "count %d is out of range: it is a number from 1 to %d", count, limit)
	case count > limit:
		return failure.New(http.StatusRequestEntityTooLarge, "batch_too_large",
			"count %d is above the limit of %d ids in one answer: ask several times", count, limit)
	}
	return nil
}

// State returns the state of a namespace that the caller may use.
func (f *Front) State(caller *access.Caller, name string) (State, error) {
	if err := f.may(caller, name); err != nil {
		return State{}, err
	}
	ns, err := f.service.find(name, false)
	if err != nil {
		return State{}, f.failed("", err)
	}
	return ns.state(caller.Admin()), nil
}

// List returns the states of all namespaces that the caller may use, by name.
func (f *Front) List(caller *access.Caller) []State {
	states := []State{}
	caller, err := f.Current(caller)
	if err != nil {
		return states // empty for a revoked caller
	}
	all := f.service.now.Load().namespaces
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if caller.May(name) {
			states = append(states, all[name].state(caller.Admin()))
		}
	}
	return states
}

// Slots returns the slots of a pool, as the store has them, to an administrator.
func (f *Front) Slots(ctx context.Context, caller *access.Caller, pool string) (Pool, error) {
	if err := f.Admin(caller, "pools"); err != nil {
		return Pool{}, err
	}
	p, err := ReadPool(ctx, f.service.store, pool)
	if err != nil {
		return p, f.failed("", err)
	}
	return p, nil
}

// A DecodeRequest is an id to decode and the layout to decode it by: that of a namespace, or
// one that is described. All texts but ID may be empty.
type DecodeRequest struct {
	ID, Format          string
	Namespace           string
	Layout, Unit, Epoch string
}

// Decode decodes an id.
func (f *Front) Decode(caller *access.Caller, r DecodeRequest) (decode.Result, error) {
	if r.Namespace != "" {
		if err := f.may(caller, r.Namespace); err != nil {
			return decode.Result{}, err
		}
	}
	result, err := f.decode(r)
	if err != nil {
		return result, f.failed("", err)
	}
	return result, nil
}

func (f *Front) decode(r DecodeRequest) (decode.Result, error) {
	layout, err := f.layout(r)
	if err != nil {
		return decode.Result{}, err
	}
	if err := decode.CheckFormat(r.Format); err != nil {
		return decode.Result{}, failure.BadRequest("bad_format", "%v", err)
	}
	result, err := decode.Text(r.ID, r.Format, layout, time.Now())
	if err != nil {
		return decode.Result{}, failure.BadRequest("bad_id", "%v", err)
	}
	return result, nil
}

func (f *Front) layout(r DecodeRequest) (layout firn.Layout, err error) {
	if r.Namespace == "" {
		described := settings.Namespace{Pooled: settings.Pooled{Layout: r.Layout}}
		if layout, err = decode.Layout(described.LayoutText(), r.Unit, r.Epoch); err != nil {
			return layout, failure.BadRequest("bad_layout", "%v", err)
		}
		return layout, nil
	}
	if r.Layout != "" || r.Unit != "" || r.Epoch != "" {
		return layout, failure.BadRequest("bad_request", "give a namespace, or a layout with unit and epoch, not both")
	}
	ns, err := f.service.find(r.Namespace, false)
	if err != nil {
		return layout, err
	}
	layout, ok := ns.Layout()
	if !ok {
		return layout, failure.BadRequest("bad_request", "the ids of namespace %s, of kind %s, cannot be taken apart here", ns.name, ns.Kind())
	}
	return layout, nil
}
