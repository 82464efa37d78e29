package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// refusalTimeout bounds the write that tells a client why its connection is refused.
	// The buffers are empty, so the write does not block.
	refusalTimeout = 100 * time.Millisecond
	// refusalsEvery is how often the log says that connections are refused.
	refusalsEvery = 10 * time.Second
)

// A connectionLimit counts the connections of a listener, and refuses those above a
// limit at once. If they waited, the holders of the other connections would decide for
// how long.
type connectionLimit struct {
	net.Listener
	name    string
	max     func() int
	refusal []byte // in the listener's protocol; empty where that begins with a handshake
	log     *slog.Logger
	refused prometheus.Counter

	open       atomic.Int64
	lastWarned atomic.Int64 // Unix nanoseconds

	stopped atomic.Bool
	closed  chan struct{}
	once    sync.Once // for closed
}

// Accept returns the next connection that is within the limit.
func (l *connectionLimit) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if l.stopped.Load() {
				<-l.closed
			}
			return nil, err
		}
		if n := l.open.Add(1); n <= int64(l.max()) {
			return &countedConn{Conn: c, of: l}, nil
		}
		l.open.Add(-1)
		l.refuse(c)
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

func (l *connectionLimit) refuse(c net.Conn) {
	l.refused.Inc()
	if len(l.refusal) > 0 && c.SetWriteDeadline(time.Now().Add(refusalTimeout)) == nil {
		_, _ = c.Write(l.refusal) // the client may be gone
	}
	_ = c.Close() // no request was read, so no answer is due
	now, lastWarned := time.Now().UnixNano(), l.lastWarned.Load()
	if now-lastWarned >= int64(refusalsEvery) && l.lastWarned.CompareAndSwap(lastWarned, now) {
		l.log.Warn("connections are refused", "listener", l.name, "limit", l.max(), "from", c.RemoteAddr().String(),
			"advice", "raise limits.connections, or find out who opens so many")
	}
}

// A countedConn frees its place in the limit when it is closed.
type countedConn struct {
	net.Conn
	of     *connectionLimit
	closed atomic.Bool
}

// Counted returns the inner connection, for callers that need its descriptor. Close it
// through countedConn.
func (c *countedConn) Counted() net.Conn { return c.Conn }

// Close closes the connection.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.of.open.Add(-1)
	}
	return err
}

// httpRefusal is the answer on a connection above the limit.
var httpRefusal = func() []byte {
	const body = `{"error":{"code":"too_many_connections","message":"too many connections: try again, or another server"}}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		len(body), body)
}()

// bound returns a listener with the configuration's limit of connections, which may change
// later. Refusal is the answer to a connection above the limit, in the listener's protocol;
// with TLS it is nil. Metrics use the name, which must be unique.
func (s *Server) bound(listener net.Listener, name string, refusal []byte) *connectionLimit {
	if s.certificates != nil {
		refusal = nil
	}
	l := &connectionLimit{
		Listener: listener, name: name, refusal: refusal, log: s.log, refused: s.metrics.refused.WithLabelValues(name), closed: make(chan struct{}),
		max: func() int { return int(s.maxConnections.Load()) },
	}
	s.metrics.connections.add(name, &l.open)
	return l
}
