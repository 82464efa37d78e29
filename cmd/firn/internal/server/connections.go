package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
)

const (
	// refusalTimeout bounds the write that tells a client why its connection is refused.
	// The buffers are empty, so the write does not block.
	refusalTimeout = 100 * time.Millisecond
	// refusalsEvery is how often the log says that connections are refused.
	refusalsEvery = 10 * time.Second
	// leastIdle is how long a connection must have been idle before a new one may take its place.
	leastIdle = time.Second
	// samples is how many connections are compared to find an old one. The oldest of all would need a list in the order of
	// use, and so a lock for every request. Redis chooses keys to evict in the same way.
	samples = 16
	// inBuffer and outBuffer are how many bytes of a connection wait in the kernel for the server and for the client. Linux
	// doubles them for its own data. With less than two segments of the loopback interface, answers would wait for delayed acknowledgements.
	inBuffer, outBuffer = 128 << 10, 128 << 10
)

// A connectionLimit gives each client its share of a listener's connections. Where there is none left for a new one, it
// closes the longest idle one of the same client or, if all connections are taken, of the client that has most of them.
// If none is idle, the new one is refused at once: if it waited, the holders of the others would decide for how long.
//
// A listener with spares serves probes over some connections above the limit, since a client with many connections
// must not have the server restarted. The newest closes the oldest of them.
type connectionLimit struct {
	net.Listener
	name      string
	resource  share.Resource
	shares    *share.Shares
	refusal   []byte // in the listener's protocol; empty where that begins with a handshake
	spare     bool
	encrypted bool
	patience  time.Duration // the usual deadline of a read; 0: deadlines are set as they are asked for
	log       *slog.Logger
	taken     prometheus.Gauge // connections within the limit
	refused   prometheus.Counter
	warned    *telemetry.Seldom
	began     time.Time

	mu       sync.Mutex // guards the fields below
	clients  map[*share.Client]*connections
	largest  *connections // about: the client with most connections
	spares   []*countedConn
	newSpare int

	stopped atomic.Bool
	closed  chan struct{}
	once    sync.Once // for closed
}

// connections are those of one client.
type connections struct{ all []*countedConn }

// Accept returns the next connection that is within the limit, or a spare one.
func (l *connectionLimit) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			if l.stopped.Load() {
				<-l.closed
			}
			return nil, err
		}
		bufferLittle(inner)
		if l.patience > 0 {
			inner = newPatientConn(inner, l.patience)
		}
		c := &countedConn{Conn: inner, of: l, client: l.shares.Client(inner.RemoteAddr().String())}
		c.guard = newGuard(l.resource, l.encrypted)
		c.Idle(time.Now())
		if c.client.Take(l.resource, 1) || l.evict(c.client) && c.client.Take(l.resource, 1) {
			l.add(c)
			return c, nil
		}
		l.warn(c)
		if l.spare {
			l.addSpare(c)
			return c, nil
		}
		l.refuse(c)
	}
}

// bufferLittle bounds the memory that the kernel uses for a connection, which a container's limit includes. By itself it
// allows megabytes to a client that has once read fast.
func bufferLittle(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(inBuffer)   // they fail only
		_ = tcp.SetWriteBuffer(outBuffer) // if the client has gone
	}
}

// stopAccepting closes the listener; a pending Accept returns only after Close.
func (l *connectionLimit) stopAccepting() error {
	l.stopped.Store(true)
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) { // already closed if it failed
		return err
	}
	return nil
}

// Close closes the listener.
func (l *connectionLimit) Close() error {
	l.once.Do(func() { close(l.closed) })
	err := l.Listener.Close()
	if l.stopped.Load() && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *connectionLimit) add(c *countedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.clients[c.client]
	if own == nil {
		own = &connections{}
		l.clients[c.client] = own
	}
	c.place = len(own.all)
	own.all = append(own.all, c)
	if l.largest == nil || len(own.all) > len(l.largest.all) {
		l.largest = own
	}
	l.taken.Inc()
}

// addSpare adds a connection above the limit, and closes the oldest such.
func (l *connectionLimit) addSpare(c *countedConn) {
	c.spare = true
	l.mu.Lock()
	oldest := l.spares[l.newSpare]
	l.spares[l.newSpare] = c
	l.newSpare = (l.newSpare + 1) % len(l.spares)
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its client has sent nothing, or too slowly
	}
}

// remove forgets a closed connection.
func (l *connectionLimit) remove(c *countedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.spare {
		for i, s := range l.spares {
			if s == c {
				l.spares[i] = nil
			}
		}
		return
	}
	own := l.clients[c.client]
	last := own.all[len(own.all)-1]
	last.place = c.place
	own.all[c.place] = last
	own.all[len(own.all)-1] = nil
	if own.all = own.all[:len(own.all)-1]; len(own.all) == 0 {
		delete(l.clients, c.client)
	}
	l.taken.Dec()
}

// evict closes an old idle connection of a client that has its share, or else of the largest client.
func (l *connectionLimit) evict(by *share.Client) bool {
	l.mu.Lock()
	from := l.largest
	if by.Full(l.resource) {
		from = l.clients[by]
	}
	var old *countedConn
	since := l.at(time.Now().Add(-leastIdle))
	if from != nil && len(from.all) > 0 {
		for range samples {
			c := from.all[rand.IntN(len(from.all))]
			if idle := c.idle.Load(); idle > 0 && idle < since {
				old, since = c, idle
			}
		}
	}
	l.mu.Unlock()
	if old == nil {
		return false
	}
	_ = old.Close() // it is between requests, so no answer is lost
	return true
}

// at returns a time since the listener began, above zero.
func (l *connectionLimit) at(t time.Time) int64 { return int64(t.Sub(l.began)) + 1 }

func (l *connectionLimit) refuse(c *countedConn) {
	if len(l.refusal) > 0 && c.SetWriteDeadline(time.Now().Add(refusalTimeout)) == nil {
		_, _ = c.Write(l.refusal) // the client may be gone
	}
	c.client.Leave()
	_ = c.Conn.Close() // no request was read, so no answer is due
}

// warn counts a connection above the limit, and logs it now and then.
func (l *connectionLimit) warn(c *countedConn) {
	l.refused.Inc()
	if _, due := l.warned.Due(time.Since(l.began)); !due {
		return
	}
	all, each := l.shares.Of(l.resource)
	advice := "raise limits.connections, or find out who opens so many"
	if each < all && c.client.Full(l.resource) {
		advice = "find out who opens so many from this address; behind a proxy, raise limits.share"
	}
	l.log.Warn("connections are refused", "listener", l.name, "limit", all, "share", each, "from", c.RemoteAddr().String(), "advice", advice)
}

// A countedConn frees its place in the limit when it is closed.
type countedConn struct {
	net.Conn
	of     *connectionLimit
	client *share.Client
	spare  bool         // above the limit: only for probes
	place  int          // in connections; guarded by of.mu
	idle   atomic.Int64 // since when no request is under way, as of.at; 0: one is
	closed atomic.Bool
	guard  *guard
}

// Read returns what the client has sent, unless its address has its share of memory.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	c.turn()
	admitted := c.guard.admit(b[:n], c.client)
	c.endIfClosed()
	if !admitted {
		c.of.warn(c)
		return 0, errShare
	}
	return n, err
}

// endIfClosed gives back what was taken while another goroutine closed the connection, as to have its place.
func (c *countedConn) endIfClosed() {
	if c.closed.Load() {
		c.guard.end(c.client)
	}
}

// turn takes a turn at the processors for a connection of HTTP or gRPC. Those of the Redis protocol do so themselves, since they
// read from the descriptor.
func (c *countedConn) turn() {
	if c.of.resource != share.RedisConnections {
		c.client.Turn(true)
	}
}

// Write sends an answer. HTTP/2 reads nothing meanwhile, see guard.admit.
func (c *countedConn) Write(b []byte) (int, error) {
	c.turn()
	c.guard.writing.Lock()
	defer c.guard.writing.Unlock()
	return c.Conn.Write(b)
}

// Counted returns the inner connection, for callers that need its descriptor. Close it
// through countedConn.
func (c *countedConn) Counted() net.Conn { return c.Conn }

// Client returns what has the shares of the connection's address.
func (c *countedConn) Client() *share.Client { return c.client }

// Spare reports whether the connection is above the limit, and only for probes.
func (c *countedConn) Spare() bool { return c.spare }

// Idle says that no request is under way, so that a new connection may take the place of this one.
func (c *countedConn) Idle(since time.Time) { c.idle.Store(c.of.at(since)) }

// Busy says that a request is under way.
func (c *countedConn) Busy() { c.idle.Store(0) }

// Close closes the connection.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.of.remove(c)
		c.guard.end(c.client)
		if !c.spare {
			c.client.Give(c.of.resource, 1)
		}
		c.client.Leave()
	}
	return err
}

// counted returns the counted connection under c, which may be encrypted; nil if there is none.
func counted(c net.Conn) *countedConn {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	of, _ := c.(*countedConn)
	return of
}

// spareKey is the context key of a connection above the limit.
type spareKey struct{}

// connContext adds what the handlers know about a connection.
func connContext(ctx context.Context, nc net.Conn) context.Context {
	c := counted(nc)
	if c == nil {
		return ctx
	}
	ctx = share.With(ctx, c.client)
	if c.spare {
		ctx = context.WithValue(ctx, spareKey{}, true)
	}
	return ctx
}

// connState follows whether a request is under way on a connection.
func connState(nc net.Conn, state http.ConnState) {
	c := counted(nc)
	switch {
	case c == nil:
	case state == http.StateActive:
		c.Busy()
		c.guard.enter(request, c.client)
	case state == http.StateIdle:
		c.idle.Store(int64(time.Since(c.of.began)) + 1) // as Idle does, with a cheaper reading of the clock
		c.guard.enter(head, c.client)
	}
}

// bound returns a listener with the configuration's limit of connections, which may change
// later. Refusal is the answer to a connection above the limit, in the listener's protocol;
// with TLS it is nil. Metrics use the name, which must be unique.
func (s *Server) bound(listener net.Listener, name string, of share.Resource, refusal []byte) *connectionLimit {
	if s.certificates != nil {
		refusal = nil
	}
	l := &connectionLimit{
		Listener: listener, name: name, resource: of, shares: s.shares, refusal: refusal, spare: of != share.RedisConnections, encrypted: s.certificates != nil,
		log: s.log, taken: s.metrics.connections.WithLabelValues(name), refused: s.metrics.refused.WithLabelValues(name), warned: telemetry.NewSeldom(refusalsEvery), began: time.Now(), closed: make(chan struct{}), clients: map[*share.Client]*connections{},
		spares: make([]*countedConn, spares(descriptors())),
	}
	if of == share.HTTPConnections {
		l.patience = s.timeouts.header
	}
	return l
}
