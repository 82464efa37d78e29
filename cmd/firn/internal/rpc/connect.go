package rpc

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"

	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"connectrpc.com/connect"
	health "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// Register adds the interface's handlers to a mux.
func (a *API) Register(mux *http.ServeMux) {
	limits := connect.WithHandlerOptions(
		connect.WithReadMaxBytes(maxMessage),
		// Requests may be compressed, answers never are: runs are smaller than gzipped lists, and
		// take less than a thousandth of the time.
		connect.WithCompressMinBytes(math.MaxInt),
	)
	path, ids := firnv1connect.NewIDServiceHandler(overConnect{a}, limits, connect.WithRequestGate(a.identify))
	mux.Handle(path, a.exchanged(ids, false))
	path, leases := firnv1connect.NewLeaseServiceHandler(overConnect{a}, limits, connect.WithRequestGate(a.identify))
	mux.Handle(path, a.exchanged(leases, false))
	a.registerHealth(mux, limits)
	for _, service := range []string{reflectionService, oldReflectionService} {
		path := "/" + service + "/" + reflectionMethod
		mux.Handle(path, a.exchanged(connect.NewBidiStreamHandler(path, a.reflect, limits), true))
	}
}

// Owns reports whether a path is an RPC's: a service and a method and nothing more. A longer
// path belongs to another system, with a prefix that looks like a service.
func Owns(path string) bool {
	return (strings.HasPrefix(path, "/firn.v1.") || strings.HasPrefix(path, "/grpc.")) && strings.Count(path, "/") == 2
}

// An exchange is a request of net/http and its response.
type exchange struct {
	response http.ResponseWriter
	request  *http.Request
	client   *share.Client
	counted  bool   // nothing is left to count
	release  func() // called after the answer is written
}

type (
	exchangeKey struct{}
	callerKey   struct{}
)

// exchanged serves a request with its exchange in the context. Unless it is open, it counts a request that never reaches a
// method because its message is unreadable or too long.
func (a *API) exchanged(h http.Handler, open bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, leave := a.service.Shares().OfRequest(r)
		defer leave()
		e := &exchange{response: w, request: r, client: client, counted: open, release: func() {}}
		defer func() { e.release() }()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
		if !e.counted {
			_ = a.front.Refuse(errUnread) // the library has answered the client
		}
	})
}

// exchangeIn returns the exchange of a request: every handler that is registered is exchanged.
func exchangeIn(ctx context.Context) *exchange {
	return ctx.Value(exchangeKey{}).(*exchange) //nolint:errcheck,forcetypeassert // else a handler was registered wrongly
}

// identify identifies the caller before the content of the request is read.
func (a *API) identify(ctx context.Context, _ connect.Spec, _ connect.Peer, _ http.Header) (context.Context, error) {
	e := exchangeIn(ctx)
	caller, err := a.front.Caller(e.request)
	if err != nil {
		e.counted = true
		return nil, a.fail(ctx, err)
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// callerIn returns the caller that identify has found; nil in a method that is open to everyone. Each method calls it first.
func callerIn(ctx context.Context) *access.Caller {
	exchangeIn(ctx).counted = true // the method counts it
	c, _ := ctx.Value(callerKey{}).(*access.Caller)
	return c
}

// overConnect has the methods of the service for connect.
type overConnect struct{ *API }

func (a overConnect) Generate(ctx context.Context, r *connect.Request[firnv1.GenerateRequest]) (*connect.Response[firnv1.GenerateResponse], error) {
	b := a.service.Batch()
	defer a.service.Recycle(b)
	if err := a.generate(ctx, callerIn(ctx), r.Msg, b); err != nil {
		return nil, a.fail(ctx, err)
	}
	exchangeIn(ctx).release = b.Detach()
	return connect.NewResponse(response(b)), nil
}

// GenerateStream sends batch after batch.
func (a overConnect) GenerateStream(ctx context.Context, r *connect.Request[firnv1.GenerateStreamRequest], to *connect.ServerStream[firnv1.GenerateResponse]) error {
	from := callerIn(ctx)
	plan, leave, err := a.open(exchangeIn(ctx).client, from, r.Msg)
	if err != nil {
		return a.fail(ctx, err)
	}
	defer leave()
	s, err := a.steer(ctx)
	if err != nil {
		return a.fail(ctx, a.front.Refuse(err))
	}
	defer s.release()
	b := a.service.Batch()
	defer a.service.Recycle(b)
	out := &connectStream{steering: s, to: to, batch: b}
	if err := a.pump(ctx, from, plan, out); err != nil {
		if out.gone != nil {
			return out.gone
		}
		return a.fail(ctx, err)
	}
	return nil
}

// A connectStream sends the messages of a stream of ids.
type connectStream struct {
	*steering
	to    *connect.ServerStream[firnv1.GenerateResponse]
	batch *issuing.Batch
	gone  error // of Send: the client has gone or reads too slowly
}

func (s *connectStream) next(context.Context) (*issuing.Batch, error) { return s.batch, nil }

func (s *connectStream) send(b *issuing.Batch) error {
	if s.gone = s.to.Send(response(b)); s.gone != nil {
		return s.gone
	}
	s.sent()
	b.Release()
	shrink(b)
	return nil
}

// through answers a question.
func through[R, A any](ctx context.Context, a *API, r *connect.Request[R], do question[R, A]) (*connect.Response[A], error) {
	answer, release, err := do(a, ctx, callerIn(ctx), r.Msg)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	if release != nil {
		exchangeIn(ctx).release = release
	}
	return connect.NewResponse(answer), nil
}

func (a overConnect) Decode(ctx context.Context, r *connect.Request[firnv1.DecodeRequest]) (*connect.Response[firnv1.DecodeResponse], error) {
	return through(ctx, a.API, r, (*API).decode)
}

func (a overConnect) ListNamespaces(ctx context.Context, r *connect.Request[firnv1.ListNamespacesRequest]) (*connect.Response[firnv1.ListNamespacesResponse], error) {
	return through(ctx, a.API, r, (*API).list)
}

func (a overConnect) Lease(ctx context.Context, r *connect.Request[firnv1.LeaseRequest]) (*connect.Response[firnv1.LeaseResponse], error) {
	return through(ctx, a.API, r, (*API).lease)
}

func (a overConnect) Renew(ctx context.Context, r *connect.Request[firnv1.RenewRequest]) (*connect.Response[firnv1.RenewResponse], error) {
	return through(ctx, a.API, r, (*API).renew)
}

func (a *API) registerHealth(mux *http.ServeMux, options connect.HandlerOption) {
	const path = "/" + healthService + "/"
	mux.Handle(path+"Check", a.exchanged(connect.NewUnaryHandler(path+"Check",
		func(ctx context.Context, r *connect.Request[health.HealthCheckRequest]) (*connect.Response[health.HealthCheckResponse], error) {
			return through(ctx, a, r, (*API).check)
		}, options), true))
	mux.Handle(path+"List", a.exchanged(connect.NewUnaryHandler(path+"List",
		func(ctx context.Context, r *connect.Request[health.HealthListRequest]) (*connect.Response[health.HealthListResponse], error) {
			return through(ctx, a, r, (*API).statuses)
		}, options), true))
	mux.Handle(path+"Watch", a.exchanged(connect.NewServerStreamHandler(path+"Watch",
		func(ctx context.Context, r *connect.Request[health.HealthCheckRequest], to *connect.ServerStream[health.HealthCheckResponse]) error {
			leave, err := enter(share.Watches, exchangeIn(ctx).client)
			if err != nil {
				return a.fail(ctx, err)
			}
			defer leave()
			s, err := a.steer(ctx)
			if err != nil {
				return a.fail(ctx, err)
			}
			defer s.release()
			var gone error
			if err := a.watch(ctx, r.Msg, s.extend, func(now *health.HealthCheckResponse) error {
				gone = to.Send(now)
				return gone
			}); gone == nil {
				return a.fail(ctx, err)
			}
			return gone
		}, options), true))
}

// reflect answers questions about the schema.
func (a *API) reflect(ctx context.Context, stream *connect.BidiStream[reflectionv1.ServerReflectionRequest, reflectionv1.ServerReflectionResponse]) error {
	leave, err := enter(share.Watches, exchangeIn(ctx).client)
	if err != nil {
		return a.fail(ctx, err)
	}
	defer leave()
	receive := func() (*reflectionv1.ServerReflectionRequest, error) {
		question, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			err = io.EOF // which the library of connect wraps
		}
		return question, err
	}
	return reflectionStream{receive: receive, send: stream.Send}.answer()
}
