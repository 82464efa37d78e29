// Package rpc serves firn.v1.IDService and firn.v1.LeaseService over gRPC, gRPC-Web and Connect, with reflection and the
// standard health service.
//
// An [API] has the rules of the methods, for every transport. It has two adapters:
//
//   - [API.Register] serves gRPC, gRPC-Web and Connect on the address of the HTTP API, by connect
//     over net/http. gRPC needs HTTP/2, in clear text or over TLS; the others also work over HTTP/1.1.
//   - [Port] serves gRPC on an address of its own, by the transport of grpc-go. A call costs about a
//     third there.
package rpc

import (
	"context"
	"log/slog"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// maxMessage bounds the bytes of a request message, also after decompression.
const maxMessage = 64 << 10

// API is the interface. Make one with [New].
type API struct {
	service *issuing.Service
	front   *issuing.Front
	log     *slog.Logger

	ending context.Context // done when streams must end
	end    context.CancelFunc

	stall, hurry time.Duration // see steering
}

// A question is a method with one message and one answer. Release is called when the answer is written; it may be nil. The
// error is counted.
type question[R, A any] func(a *API, ctx context.Context, from *access.Caller, r *R) (answer *A, release func(), err error)

// New returns the interface to a service.
func New(s *issuing.Service, log *slog.Logger) *API {
	a := &API{
		service: s, front: s.Front(issuing.RPC), log: log,
		stall: stall, hurry: hurry,
	}
	a.ending, a.end = context.WithCancel(context.Background())
	return a
}

// Drain ends streams, with an error that sends clients to another server. Unary requests
// are still answered.
func (a *API) Drain() { a.end() }

// errUnread is counted for a request whose message is unreadable or too long. The transport has answered its client.
var errUnread = failure.BadRequest("bad_request", "the request cannot be read")
