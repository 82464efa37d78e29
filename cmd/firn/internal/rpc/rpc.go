// Package rpc serves firn.v1.IDService over gRPC, gRPC-Web and Connect, with reflection and the
// standard health service. It shares its address with the HTTP API. gRPC needs HTTP/2, in clear
// text or over TLS; the others also work over HTTP/1.1.
package rpc

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// maxMessage bounds the bytes of a request message, also after decompression.
const maxMessage = 64 << 10

// API is the interface. Make one with [New].
type API struct {
	service *issuing.Service
	front   *issuing.Front
	reader  issuing.Reader
	log     *slog.Logger

	ending context.Context // done when streams must end
	end    context.CancelFunc

	stall, hurry time.Duration // see steering
	memory       sync.Pool     // of *memory
}

// New returns the interface to a service.
func New(s *issuing.Service, log *slog.Logger) *API {
	front := s.Front(issuing.RPC)
	a := &API{
		service: s, front: front, reader: front.Reader(), log: log,
		stall: stall, hurry: hurry,
	}
	a.ending, a.end = context.WithCancel(context.Background())
	return a
}

// Register adds the interface's handlers to a mux.
func (a *API) Register(mux *http.ServeMux) {
	limits := connect.WithHandlerOptions(
		connect.WithReadMaxBytes(maxMessage),
		// Requests may be compressed, answers never are: runs are smaller than gzipped lists, and
		// take less than a thousandth of the time.
		connect.WithCompressMinBytes(math.MaxInt),
	)
	path, ids := firnv1connect.NewIDServiceHandler(a, limits, connect.WithRequestGate(a.identify))
	mux.Handle(path, a.counted(ids))
	a.registerHealth(mux, limits)
	reflector := grpcreflect.NewStaticReflector(firnv1connect.IDServiceName, healthService)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, limits))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, limits))
}

// Owns reports whether a path is an RPC's: a service and a method and nothing more. A longer
// path belongs to another system, with a prefix that looks like a service.
func Owns(path string) bool {
	return (strings.HasPrefix(path, "/firn.v1.") || strings.HasPrefix(path, "/grpc.")) && strings.Count(path, "/") == 2
}

// Drain ends streams, with an error that sends clients to another server. Unary requests
// are still answered.
func (a *API) Drain() { a.end() }

// An exchange is a request of net/http and its response.
type exchange struct {
	response http.ResponseWriter
	request  *http.Request
	client   *share.Client
	counted  bool   // Front has counted it or will
	release  func() // called after the answer is written; may be nil
}

type (
	exchangeKey struct{}
	callerKey   struct{}
)

// exchanged serves a request with its exchange in the context, and returns the exchange.
func (a *API) exchanged(h http.Handler) func(http.ResponseWriter, *http.Request) *exchange {
	return func(w http.ResponseWriter, r *http.Request) *exchange {
		client, leave := a.service.Shares().OfRequest(r)
		defer leave()
		e := &exchange{response: w, request: r, client: client}
		defer e.end()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
		return e
	}
}

func (e *exchange) end() {
	if e.release != nil {
		e.release()
	}
}

// releaseAfterWrite defers release until the answer is written.
func releaseAfterWrite(ctx context.Context, release func()) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok { // only in tests, where no answer is written
		release()
		return
	}
	e.release = release
}

// plain is exchanged for requests that are not counted.
func (a *API) plain(h http.Handler) http.Handler {
	serve := a.exchanged(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r) })
}

// counted is exchanged for requests that are counted. It counts those that never reach a
// method because their message is unreadable or too long.
func (a *API) counted(h http.Handler) http.Handler {
	serve := a.exchanged(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := serve(w, r)
		if !e.counted {
			_ = a.front.Refuse(errUnread) // the library has answered the client
		}
	})
}

var errUnread = failure.BadRequest("bad_request", "the request cannot be read")

// errNoExchange is a bug in this package: every registered handler is exchanged.
var errNoExchange = errors.New("a request without its exchange")

// identify identifies the caller before the content of the request is read.
func (a *API) identify(ctx context.Context, _ connect.Spec, _ connect.Peer, _ http.Header) (context.Context, error) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, a.fail(ctx, errNoExchange)
	}
	caller, err := a.front.Caller(e.request)
	if err != nil {
		e.counted = true
		return nil, a.fail(ctx, err)
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// callerIn returns the caller that identify has found. Each method calls it first.
func callerIn(ctx context.Context) *access.Caller {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.counted = true // the method counts it
	}
	c, _ := ctx.Value(callerKey{}).(*access.Caller) // identify lets no request through without a caller
	return c
}
