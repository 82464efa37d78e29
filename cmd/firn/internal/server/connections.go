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
	// goodbyeTimeout bounds how long a connection that is refused is told so. Its
	// buffers are empty, so that this does not wait.
	goodbyeTimeout = 100 * time.Millisecond
	// refusalsEvery is how often the log says that connections are refused.
	refusalsEvery = 10 * time.Second
)

// A connectionLimit counts the connections of a listener, and refuses those above a
// limit at once: to let them wait would have whoever holds the others decide for how
// long.
type connectionLimit struct {
	net.Listener
	name    string
	max     func() int
	goodbye []byte // in the listener's protocol; empty where that begins with a handshake
	log     *slog.Logger
	refused prometheus.Counter

	open atomic.Int64
	said atomic.Int64 // when the log last said so, in Unix nanoseconds

	deaf   atomic.Bool
	closed chan struct{}
	once   sync.Once // for closed
}

// Accept returns the next connection that is within the limit.
func (l *connectionLimit) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if l.deaf.Load() {
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

// deafen takes no more connections, which whoever accepts them does not see until Close.
func (l *connectionLimit) deafen() error {
	l.deaf.Store(true)
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) { // as it is where it failed
		return err
	}
	return nil
}

// Close closes the listener.
func (l *connectionLimit) Close() error {
	l.once.Do(func() { close(l.closed) })
	err := l.Listener.Close()
	if l.deaf.Load() && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *connectionLimit) refuse(c net.Conn) {
	l.refused.Inc()
	if len(l.goodbye) > 0 && c.SetWriteDeadline(time.Now().Add(goodbyeTimeout)) == nil {
		_, _ = c.Write(l.goodbye) // whoever has gone need not be told
	}
	_ = c.Close() // nothing was read from it or is owed to it
	now, said := time.Now().UnixNano(), l.said.Load()
	if now-said >= int64(refusalsEvery) && l.said.CompareAndSwap(said, now) {
		l.log.Warn("connections are refused", "listener", l.name, "limit", l.max(), "from", c.RemoteAddr().String(),
			"advice", "raise limits.connections, or find out who opens so many")
	}
}

// A countedConn is a connection that makes room when it is closed.
type countedConn struct {
	net.Conn
	of     *connectionLimit
	closed atomic.Bool
}

// Counted returns the connection itself, for those who serve its descriptor. It is
// closed here.
func (c *countedConn) Counted() net.Conn { return c.Conn }

// Close closes the connection.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.of.open.Add(-1)
	}
	return err
}

// httpGoodbye is what a connection that is too many is answered.
var httpGoodbye = func() []byte {
	const body = `{"error":{"code":"too_many_connections","message":"the server has as many connections as it may: try again, or another server"}}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		len(body), body)
}()

// bound returns a listener with the limit of connections that the configuration has,
// which may change. Goodbye is what one that is too many is told in the protocol of the
// listener; it is left out under TLS. The name is that in metrics, once for each.
func (s *Server) bound(listener net.Listener, name string, goodbye []byte) *connectionLimit {
	if s.certificates != nil {
		goodbye = nil
	}
	l := &connectionLimit{
		Listener: listener, name: name, goodbye: goodbye, log: s.log, refused: s.metrics.refused.WithLabelValues(name), closed: make(chan struct{}),
		max: func() int { return int(s.maxConnections.Load()) },
	}
	s.metrics.connections.add(name, &l.open)
	return l
}
