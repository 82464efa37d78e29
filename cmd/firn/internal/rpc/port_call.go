package rpc

import (
	"context"
	"net/http"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A call is a request. It is a part of its context.
type call struct {
	context.Context
	conn          *conn
	header        metadata.MD
	authority     string
	authorization []string
	plain         bool // no other header says who calls

	ctx     context.Context // with the span, if there is one
	under   share.Resource
	refs    atomic.Int32 // the method and the answers that are not written
	leave   func()       // gives the place of a stream back; may be nil
	patient bool         // it may wait longer for messages; its method bounds the time
	whole   bool         // its message is complete; only for its method
	reading entry        // guarded by the mutex of conn
}

// callKey is the context key of a call.
type callKey struct{}

// Value implements [context.Context].
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// callIn returns the call of a context.
func callIn(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call) // tap has put it there
	return c
}

// tap makes a call of a request, before grpc-go begins anything for it. It takes a place among the requests in flight:
// thousands may arrive before one of their methods runs. It is also the only place at which grpc-go shows the headers
// without a copy.
func (p *Port) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	from, _ := peer.FromContext(ctx)
	c := &call{Context: ctx, header: info.Header, plain: true, under: share.Requests}
	c.conn, _ = from.AuthInfo.(*conn) // handshaker has put it there
	fields := 0
	for name, values := range info.Header {
		fields += len(values)
		switch name {
		case ":authority":
			c.authority = values[0]
		case "authorization":
			c.authorization = values
		default:
			c.plain = c.plain && !access.Identifies(name)
		}
	}
	if info.FullMethodName == checkHealth {
		c.under = share.Probes
	}
	if err := c.admit(fields); err != nil {
		if a := p.api.Load(); a != nil {
			err = a.front.Refuse(err)
		}
		return ctx, statusOf(ctx, p.cfg.Log, err)
	}
	return c, nil
}

// checkHealth is the method of probes.
const checkHealth = "/" + healthService + "/Check"

// value returns the first value of a header.
func (c *call) value(name string) string {
	if v := c.header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// admit takes a place among the requests in flight, until unref, or until conn drops the call.
func (c *call) admit(fields int) error {
	client := c.conn.client
	if fields > failure.MaxFields {
		return failure.TooManyFields(fields)
	}
	if c.conn.spare() && c.under != share.Probes {
		return client.Refusal(share.HTTP2Connections)
	}
	if !client.Take(c.under, 1) {
		return client.Refusal(c.under)
	}
	if err := c.conn.arrive(c); err != nil {
		client.Give(c.under, 1)
		return err
	}
	return nil
}

// begin begins the method of a call that was admitted. Each success is followed by unref.
func (c *call) begin() error {
	c.ctx = c
	c.refs.Store(1)
	return c.conn.begin(c)
}

// complete says that the message is complete, or will never be.
func (c *call) complete() {
	if !c.whole {
		c.whole = true
		c.conn.complete(c)
	}
}

// receive reads the only message of a request.
func (c *call) receive(stream grpc.ServerStream, r *request) error {
	err := stream.RecvMsg(r)
	c.complete()
	if err == nil && r.err != nil {
		err = unreadable(r.err)
	}
	if err == nil {
		err = uncompressed(stream.Context())
	}
	if err != nil {
		return transportError{err}
	}
	return nil
}

func unreadable(err error) error {
	return status.Errorf(codes.InvalidArgument, "the message cannot be read: %v", err)
}

// uncompressed makes sure that the answer to a compressed request is not compressed: see [API.Register].
func uncompressed(ctx context.Context) error {
	s, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok || s.RecvCompress() == "" {
		return nil
	}
	return grpc.SetSendCompressor(ctx, encoding.Identity)
}

// unref ends the call with its method and its last answer.
func (c *call) unref() {
	if c.refs.Add(-1) > 0 {
		return
	}
	if c.leave != nil {
		c.leave()
	}
	c.conn.client.Give(c.under, 1)
	c.conn.end()
}

// caller returns the caller, which the latest request of the connection has often proved already.
func (c *call) caller(a *API) (*access.Caller, error) {
	authorization := ""
	if len(c.authorization) > 0 {
		authorization = c.authorization[0]
	}
	cacheable := c.plain && len(c.authorization) <= 1
	if k := c.conn.known.Load(); cacheable && k != nil && k.authority == c.authority && k.authorization == authorization {
		return k.caller, nil // Front finds out whether it was revoked since
	}
	caller, err := a.front.Caller(c.request())
	if err == nil && cacheable {
		c.conn.known.Store(&known{c.authority, authorization, caller})
	}
	return caller, err
}

// request returns what the rules of access look at, as net/http has it.
func (c *call) request() *http.Request {
	r := &http.Request{
		Method: http.MethodPost, ProtoMajor: 2, Host: c.authority, RemoteAddr: c.conn.remote, TLS: c.conn.tls,
		Header: make(http.Header, len(c.header)),
	}
	for name, values := range c.header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	return r.WithContext(share.With(context.WithValue(context.Background(), http.LocalAddrContextKey, c.conn.local), c.conn.client))
}
