package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	// Requests may be compressed with gzip.
	_ "google.golang.org/grpc/encoding/gzip"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// PortConfig is the configuration of a [Port].
type PortConfig struct {
	Log    *slog.Logger
	Shares *share.Shares
	// Starting is the error of requests before [Port.Open].
	Starting *failure.Failure
	// TLS has the certificates; nil: clear text.
	TLS *tls.Config
	// Refused, if not nil, receives the errors of handshakes.
	Refused func(from string, err error)
	// Trace, if not nil, begins the span of a request, as part of the trace that its header names; end ends it.
	Trace func(ctx context.Context, method string, header func(name string) string) (_ context.Context, end func(error))

	Handshake time.Duration // for the first bytes of a connection
	Read      time.Duration // for a whole message
	Write     time.Duration // for the client to take an answer
	Idle      time.Duration // between requests
	Ping      time.Duration // a silent connection gets a ping after this, and has as long to answer or to take bytes
}

const (
	// maxConcurrent bounds the requests of one connection, and maxHeader the bytes of their headers.
	maxConcurrent = 250
	maxHeader     = 8 << 10
	// readBuffer is the size of the buffer that a connection keeps, writeBuffer of the one that it borrows to write.
	readBuffer  = 4 << 10
	writeBuffer = 32 << 10
	// leastWindow is the least flow-control window of HTTP/2: it holds the largest request.
	leastWindow = 64 << 10
	// leastPing is how often a client may send pings: as often as it likes. What grpc-go answers to more of them takes
	// memory for each, while pings wait for their answers.
	leastPing = time.Nanosecond
	// checkEvery is how often connections are checked for clients that keep the server waiting.
	checkEvery = time.Second
)

// A Port serves gRPC on an address of its own, by grpc-go. Make one with [NewPort]. It answers that the server is
// starting until [Port.Open].
type Port struct {
	cfg     PortConfig
	api     atomic.Pointer[API]
	server  *grpc.Server
	answers sync.Pool // of *answer

	mu    sync.Mutex // guards the field below
	conns map[*conn]struct{}

	stopped context.Context
	stop    context.CancelFunc
}

// NewPort returns a port.
func NewPort(cfg PortConfig) *Port {
	p := &Port{cfg: cfg, conns: map[*conn]struct{}{}}
	p.stopped, p.stop = context.WithCancel(context.Background())
	p.server = grpc.NewServer(
		grpc.Creds(handshaker{insecure.NewCredentials(), p}),
		grpc.InTapHandle(p.tap),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxConcurrentStreams(maxConcurrent),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.StaticConnWindowSize(leastWindow), // without the pings that measure a larger one
		grpc.StaticStreamWindowSize(leastWindow),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.ConnectionTimeout(cfg.Handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: cfg.Idle, Time: cfg.Ping, Timeout: cfg.Ping}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.NumStreamWorkers(uint32(4*runtime.GOMAXPROCS(0))), // their stacks have grown already
	)
	for _, service := range p.services() {
		p.server.RegisterService(service, nil)
	}
	return p
}

// Open serves an interface.
func (p *Port) Open(a *API) { p.api.Store(a) }

// Serve answers on a listener until [Port.Shutdown] or [Port.Close]; then it returns [http.ErrServerClosed].
func (p *Port) Serve(on net.Listener) error {
	go p.watch()
	if err := p.server.Serve(on); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return http.ErrServerClosed
}

// Shutdown closes the listener and returns when the requests in flight are answered, or when ctx ends.
func (p *Port) Shutdown(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		p.server.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
		p.stop()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the listener and all connections.
func (p *Port) Close() error {
	p.server.Stop()
	p.stop()
	return nil
}

// watch closes connections whose clients keep the server waiting. A timer for each request would cost more.
func (p *Port) watch() {
	for tick := time.Tick(min(checkEvery, p.cfg.Read/4, p.cfg.Write/4)); ; {
		select {
		case now := <-tick:
			p.check(now)
		case <-p.stopped.Done():
			return
		}
	}
}

// follow lets check look at a connection, until forget.
func (p *Port) follow(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
}

func (p *Port) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Port) check(now time.Time) {
	p.mu.Lock()
	all := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock() // begin locks a connection before this mutex
	for _, c := range all {
		if err := c.late(now); err != nil {
			p.cfg.Log.Debug("a connection of gRPC is closed", "from", c.remote, "error", err)
			go func() { _ = c.Close() }() // with TLS it may wait for the client, who takes nothing
		}
	}
}

// A handshaker begins connections. Of the credentials a server uses only the handshake.
type handshaker struct {
	credentials.TransportCredentials
	port *Port
}

// ServerHandshake implements [credentials.TransportCredentials]. The time for it is limited.
func (h handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	p := h.port
	c := newConn(p, raw)
	if p.cfg.TLS != nil {
		encrypted := tls.Server(raw, p.cfg.TLS)
		err := encrypted.HandshakeContext(context.Background()) // raw has a deadline
		state := encrypted.ConnectionState()
		if err == nil && state.NegotiatedProtocol != "h2" {
			err = fmt.Errorf("the client offers no h2 in ALPN, as gRPC needs it")
		}
		if err != nil {
			if p.cfg.Refused != nil {
				p.cfg.Refused(c.remote, err)
			}
			return nil, nil, errors.Join(err, c.Close())
		}
		c.Conn, c.tls = encrypted, &state
	}
	return c, c, nil
}

// A method answers a request. Its error is one that package failure knows, or of grpc.
type method func(a *API, c *call, stream grpc.ServerStream) error

// serve returns the handler of a method: it counts the request among those in flight until its answer is written.
func (p *Port) serve(name string, do method) grpc.StreamHandler {
	return func(_ any, stream grpc.ServerStream) (err error) {
		ctx := stream.Context()
		c := callIn(ctx)
		defer func() {
			if why := recover(); why != nil { // as net/http does
				p.cfg.Log.Error("a request of gRPC panicked", "method", name, "panic", why, "stack", string(debug.Stack()))
				err = statusOf(ctx, p.cfg.Log, errPanic)
			}
		}()
		if err := c.begin(); err != nil {
			return statusOf(ctx, p.cfg.Log, err)
		}
		defer c.unref()
		defer c.complete()
		c.conn.client.Turn(true)
		if err := ctx.Err(); err != nil { // reset by its client
			return statusOf(ctx, p.cfg.Log, err)
		}
		a := p.api.Load()
		if a == nil {
			return statusOf(ctx, p.cfg.Log, p.cfg.Starting)
		}
		if p.cfg.Trace == nil || c.under == share.Probes {
			return statusOf(ctx, a.log, do(a, c, stream))
		}
		traced, end := p.cfg.Trace(ctx, name, c.value)
		c.ctx = traced
		err = statusOf(ctx, a.log, do(a, c, stream))
		end(err)
		return err
	}
}

var errPanic = errors.New("the server's log has the error")
