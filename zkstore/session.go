package zkstore

import (
	"context"
	"io"
	"log"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store/backend"
)

const (
	// sessionTimeout is also how long a server may be silent.
	sessionTimeout = 5 * time.Second
	// handshakeTimeout bounds the wait for a server's first answer.
	handshakeTimeout = 2 * time.Second
	// watchEvery is how often a session checks its connection. If two checks find it gone, a fresh session
	// replaces it: the client alone would never return to servers that were wiped or restored, which refuse a
	// client that has seen later changes. And holders must find their slots again while newcomers wait.
	watchEvery = 500 * time.Millisecond
)

// open begins a session and waits for a server. Close the store after an error too.
func (s *Store) open(ctx context.Context) error {
	watch, stop := context.WithCancel(context.Background())
	s.stop = stop
	conn, err := dial(s.servers)
	if err != nil {
		return s.calls.Wrap("open", strings.Join(s.servers, ","), err)
	}
	s.conn.Store(conn)
	if err = s.begin(ctx, conn); err == nil {
		s.watching.Go(func() { s.watch(watch) })
	}
	return err
}

// dial returns a connection that is established in the background.
func dial(servers []string) (*zk.Conn, error) {
	quiet := log.New(io.Discard, "", 0) // the store returns its errors
	conn, _, err := zk.Connect(servers, sessionTimeout, zk.WithLogger(quiet), zk.WithEventCallback(func(zk.Event) {}), zk.WithDialer(
		// The client would wait only a second, too short if many connect at once.
		func(network, address string, _ time.Duration) (net.Conn, error) {
			c, err := net.DialTimeout(network, address, sessionTimeout)
			return &impatient{Conn: c}, err
		}))
	return conn, err
}

// impatient is a connection whose handshake is bounded. The client would wait 33 s for a server that accepts
// and does not answer, and newcomers wait 12 s for a holder that has to find another.
type impatient struct {
	net.Conn
	answered bool
}

// SetReadDeadline implements [net.Conn].
func (c *impatient) SetReadDeadline(t time.Time) error {
	if limit := time.Now().Add(handshakeTimeout); !c.answered && t.After(limit) {
		t = limit
	}
	return c.Conn.SetReadDeadline(t)
}

// Read implements [net.Conn]. Only one goroutine reads at a time.
func (c *impatient) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.answered = c.answered || n > 0
	return n, err
}

// begin adds the account to a connection and waits for a server's answer.
func (s *Store) begin(ctx context.Context, conn *zk.Conn) error {
	_, err := backend.Do(ctx, s.calls, "open", strings.Join(s.servers, ","), func(context.Context) (string, error) {
		if s.auth != nil {
			if err := conn.AddAuth("digest", s.auth); err != nil {
				return "", err
			}
		}
		return conn.Sync("/")
	})
	return err
}

// watch replaces a lost connection. Calls that wait for it return the error of a lost connection.
func (s *Store) watch(ctx context.Context) {
	for gone := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		before := gone
		if gone = s.gone(); !before || !gone {
			continue
		}
		fresh, err := dial(s.servers)
		if err != nil {
			continue // the addresses cannot be resolved now
		}
		soon, cancel := context.WithTimeout(ctx, sessionTimeout)
		if s.begin(soon, fresh) == nil && s.gone() {
			fresh = s.conn.Swap(fresh)
		}
		cancel()
		fresh.Close()
	}
}

func (s *Store) gone() bool { return s.conn.Load().State() != zk.StateHasSession }

// end ends the session.
func (s *Store) end() error {
	s.stop()
	s.watching.Wait()
	if conn := s.conn.Load(); conn != nil {
		conn.Close()
	}
	return nil
}
