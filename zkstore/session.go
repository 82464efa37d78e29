package zkstore

import (
	"context"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
)

const (
	// sessionTimeout is what the client asks for. A server may choose another one.
	sessionTimeout = 5 * time.Second
	// silence is how long a server may leave something unanswered, whatever session time-out it chooses.
	silence = 2 * time.Second
	// watchEvery is how often a session checks its connection. If two checks find it gone, a fresh session
	// replaces it: the client alone would never return to servers that were wiped or restored, which refuse a
	// client that has seen later changes. And holders must find their slots again while newcomers wait.
	watchEvery = 500 * time.Millisecond
)

// open begins a session and waits for a server. Close the store after an error too.
func (s *Store) open(ctx context.Context) error {
	watch, stop := context.WithCancel(context.Background())
	s.stop = stop
	conn, err := connect(s.servers, s.dialer)
	if err != nil {
		return s.calls.Wrap("open", strings.Join(s.servers, ","), err)
	}
	s.conn.Store(conn)
	if err = s.begin(ctx, conn); err == nil {
		s.watching.Go(func() { s.watch(watch) })
	}
	return err
}

// connect returns a connection that is established in the background. The client's own way asks the servers
// one by one, and looks all their names up first: lost ones would take longer than newcomers wait.
func connect(servers []string, dialer *dial.Dialer) (*zk.Conn, error) {
	quiet := log.New(io.Discard, "", 0) // the store returns its errors
	conn, _, err := zk.Connect(servers, sessionTimeout, zk.WithLogger(quiet), zk.WithEventCallback(func(zk.Event) {}),
		zk.WithHostProvider(&inTurn{}),
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), dial.Timeout)
			defer cancel()
			i := slices.Index(servers, address)
			c, err := dialer.DialAny(ctx, network, slices.Concat(servers[i:], servers[:i]))
			if err != nil {
				return nil, err
			}
			return dial.Impatient(c, silence, true), nil
		}))
	return conn, err
}

// inTurn gives the client the names of the servers; each is looked up when it is dialed.
type inTurn struct {
	servers []string
	next    int
	tries   int // since the last connection
}

// Init implements [zk.HostProvider]. The client has shuffled the servers.
func (t *inTurn) Init(servers []string) error {
	t.servers = servers
	return nil
}

// Len implements [zk.HostProvider].
func (t *inTurn) Len() int { return len(t.servers) }

// Next implements [zk.HostProvider]. Around reports that all have been tried.
func (t *inTurn) Next() (server string, around bool) {
	server, around = t.servers[t.next], t.tries > 0 && t.tries%len(t.servers) == 0
	t.next, t.tries = (t.next+1)%len(t.servers), t.tries+1
	return server, around
}

// Connected implements [zk.HostProvider].
func (t *inTurn) Connected() { t.tries = 0 }

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
		fresh, err := connect(s.servers, s.dialer)
		if err != nil {
			continue // it does not fail: it connects later
		}
		soon, cancel := context.WithTimeout(ctx, dial.Timeout)
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
