package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/respapi"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
)

// Listeners are the listeners of a server, which closes them.
type Listeners struct {
	HTTP net.Listener
	RESP net.Listener // nil for none
	GRPC net.Listener // nil for none
}

// all returns the listeners that there are.
func (l Listeners) all() []net.Listener {
	return slices.DeleteFunc([]net.Listener{l.HTTP, l.RESP, l.GRPC}, func(one net.Listener) bool { return one == nil })
}

// Close closes the listeners. A server that serves them does it itself.
func (l Listeners) Close() error {
	var errs []error
	for _, one := range l.all() {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// A front serves one listener, as [http.Server] does.
type front struct {
	name     string
	listener net.Listener
	server   interface {
		Serve(net.Listener) error
		Shutdown(context.Context) error
		Close() error
	}
}

// Start serves at once: until one namespace can be served it answers that it is starting, and until
// all pools are joined, their namespaces answer that. Then it calls opened. It calls [Config.Follow] before that wait, and the
// function that Follow returned after the last request and before it gives the workers back. Start returns when
// ctx has ended or a listener has failed, with the server and the listeners closed.
func Start(ctx context.Context, c Config, on Listeners, opened func(*Server)) error {
	s, err := prepare(c)
	if err != nil {
		return errors.Join(err, on.Close())
	}
	ending := func() {}
	err = s.serve(ctx, on, func(opening context.Context) error {
		err := s.open(opening, c)
		if err != nil && ctx.Err() != nil {
			s.log.Info("shut down during startup", "error", err)
			return nil
		}
		return err
	}, func() {
		if c.Follow != nil {
			ending = c.Follow(s)
		}
	}, func() { opened(s) })
	ending()
	return errors.Join(err, s.Close())
}

// serve answers requests on the listeners until ctx ends or one of them fails. Meanwhile open opens the server. Once clients no
// longer get the answer that it is starting, serve calls follow, and once all pools are joined, opened. After ctx has ended it
// reports that it is not ready, so that balancers send no more clients, and still answers for [Config.Linger]. Then it waits for
// the requests in flight, up to a bound, and returns. Only Close, after that, gives the workers back: in the other order the next
// holder of a worker could issue at the same time as the last requests.
func (s *Server) serve(ctx context.Context, on Listeners, open func(context.Context) error, follow, opened func()) error {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { s.clock.run(ctx) })
	watching.Go(func() { tidy(ctx) })
	var addresses []string
	for _, one := range on.all() {
		addresses = append(addresses, one.Addr().String())
	}
	s.addresses.Store(&addresses)
	s.shares.Limit(s.sharesOf(s.settings()))
	taking, refuse := context.WithCancel(context.WithoutCancel(ctx)) // ends when no more requests are accepted
	defer refuse()
	ended, running := make(chan error, 3), 0
	begin := func(f front) {
		running++
		go func() {
			ended <- f.serve(taking, s.timeouts.drain, s.log)
			refuse() // if one front fails, the others must not go on
			stop()
		}()
	}
	var overHTTP *tls.Config
	if s.certificates != nil {
		overHTTP = s.certificates.over("h2", "http/1.1")
	}
	limiters := []*connectionLimit{s.bound(on.HTTP, "http", share.HTTPConnections, nil)}
	begin(front{"http", limiters[0], &httpFront{http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.timeouts.header,
		ReadTimeout:       s.timeouts.read,
		WriteTimeout:      s.timeouts.write,
		IdleTimeout:       s.timeouts.idle,
		MaxHeaderBytes:    maxHeader,
		Protocols:         protocols(),
		HTTP2:             http2(s.timeouts.ping),
		TLSConfig:         overHTTP,
		ConnContext:       connContext,
		ConnState:         connState,
		ErrorLog:          log.New(serverErrors{s, telemetry.NewSeldom(panicsEvery)}, "", 0),
	}}})
	var port *rpc.Port
	if on.GRPC != nil {
		port = s.newPort()
		limiter := s.bound(on.GRPC, "grpc", share.HTTP2Connections, nil)
		limiters = append(limiters, limiter)
		begin(front{"grpc", limiter, port})
	}
	bounded := on.RESP
	if on.RESP != nil {
		limiter := s.bound(on.RESP, "resp", share.RedisConnections, []byte(respapi.TooMany))
		limiters = append(limiters, limiter)
		bounded = limiter
		if s.certificates != nil {
			bounded = tls.NewListener(bounded, s.certificates.over())
		}
	}
	if err := s.openWhile(ctx, on.RESP, bounded, open); err != nil || s.service == nil {
		refuse()
		if on.RESP != nil {
			err = errors.Join(err, on.RESP.Close())
		}
		for range running {
			err = errors.Join(err, <-ended)
		}
		return err
	}
	if port != nil {
		port.Open(s.rpc)
	}
	s.warnDoubtful()
	if on.RESP != nil {
		begin(front{"resp", bounded, s.resp})
	}
	follow()
	joined := s.service.Joined(ctx)
	switch {
	case ctx.Err() != nil:
		s.log.Info("shut down while joining pools")
		joined = nil
	case joined != nil:
		stop()
	default:
		opened()
	}
	<-ctx.Done()
	s.lingering.Store(true)
	reason := "shutdown requested"
	if joined != nil {
		reason = "a pool could not be joined"
	}
	s.log.Info(reason+": no longer ready, still serving", "for", s.timeouts.linger)
	s.service.Drain()
	s.linger(taking, s.timeouts.linger)
	s.log.Info("shutting down: no new connections; waiting for requests in flight")
	errs := []error{joined}
	for _, d := range limiters {
		errs = append(errs, d.stopAccepting())
	}
	s.api.Drain()
	s.rpc.Drain() // not earlier: until the listeners close, a client that is sent away could reconnect here
	s.linger(taking, min(s.timeouts.linger, settle))
	refuse()
	for range running {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// settle is how long the last connections are still served after the listeners have
// closed: Shutdown of net/http drops a request that it is just reading.
const settle = 200 * time.Millisecond

// linger keeps serving for a while, or until one of the fronts fails.
func (s *Server) linger(taking context.Context, while time.Duration) {
	select {
	case <-time.After(while):
	case <-taking.Done():
	}
}

// serve returns when ctx has ended and the requests in flight are answered, or after longest. Requests that it cuts off then
// are no error: a client that does not read its answer is enough.
func (f front) serve(ctx context.Context, longest time.Duration, log *slog.Logger) error {
	failed := make(chan error, 1)
	go func() { failed <- f.server.Serve(f.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", f.name, errors.Join(err, f.server.Close()))
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	err := f.server.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) { // no error: a client may not read its answer
		log.Warn("requests still in flight were cut off", "protocol", f.name, "after", longest)
		err = f.server.Close()
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// httpFront is an HTTP server, with TLS if it is configured.
type httpFront struct{ http.Server }

// Serve answers on a listener.
func (h *httpFront) Serve(on net.Listener) error {
	if h.TLSConfig == nil {
		return h.Server.Serve(on)
	}
	return h.ServeTLS(on, "", "") // TLSConfig has the certificate
}

// protocols are the protocols of the HTTP port. Without TLS, gRPC clients speak HTTP/2 from
// the first byte, since there is no negotiation.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// http2 bounds the memory of a connection, and closes connections whose client has gone.
func http2(ping time.Duration) *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          250,
		MaxReadFrameSize:              16 << 10, // a connection keeps the largest frame that it got
		MaxDecoderHeaderTableSize:     4 << 10,
		MaxEncoderHeaderTableSize:     4 << 10,
		MaxReceiveBufferPerConnection: 64 << 10, // of bodies that no handler reads yet
		MaxReceiveBufferPerStream:     64 << 10,
		SendPingTimeout:               ping,
		PingTimeout:                   ping,
		WriteByteTimeout:              ping,
	}
}

// serverErrors receives the error log of net/http. A refused client certificate is a denial,
// which only this log reports, so it goes to the audit log. A panic is a fault of the server.
// The rest is noise of clients that disconnect.
type serverErrors struct {
	server *Server
	panics *telemetry.Seldom
}

// panicsEvery is how often a panic is logged as an error: clients repeat their requests.
const panicsEvery = 10 * time.Second

func (e serverErrors) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, found := strings.CutPrefix(text, "http: TLS handshake error from "); found {
		from, why, _ := strings.Cut(rest, ": ")
		e.server.audit.DeniedTLS(from, why)
	}
	level := slog.LevelDebug
	if strings.Contains(text, ": panic serving ") {
		if _, due := e.panics.Due(e.server.clock.time.Monotonic()); due {
			level = slog.LevelError
		}
	}
	e.server.log.Log(context.Background(), level, text)
	return len(line), nil
}

// plainEvery is how often a client without TLS is logged: it connects again and again.
const plainEvery = time.Minute

// refused returns what is called after a TLS handshake that failed. A client of HTTP is answered, those of other protocols
// see no more than a connection that ends.
func (s *Server) refused(protocol string) func(from string, err error) {
	plain := telemetry.NewSeldom(plainEvery)
	return func(from string, err error) {
		s.audit.DeniedTLS(from, err.Error())
		if _, ok := errors.AsType[tls.RecordHeaderError](err); !ok {
			return
		}
		if _, due := plain.Due(s.clock.time.Monotonic()); due {
			s.log.Warn("closed a connection: the client does not speak TLS, which this port requires", "protocol", protocol, "remote", from)
		}
	}
}

// newPort returns what serves gRPC on an address of its own, with the timeouts and certificates of HTTP.
func (s *Server) newPort() *rpc.Port {
	cfg := rpc.PortConfig{
		Log: s.log, Shares: s.shares, Starting: errStarting(),
		Handshake: s.timeouts.header, Read: s.timeouts.read, Write: s.timeouts.write, Idle: s.timeouts.idle, Ping: s.timeouts.ping,
	}
	if s.certificates != nil {
		cfg.TLS = s.certificates.over("h2")
		cfg.Refused = s.refused("grpc")
	}
	if s.traces.On() {
		cfg.Trace = s.traces.Call
	}
	return rpc.NewPort(cfg)
}
