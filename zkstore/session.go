package zkstore

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// sessionTimeout is also how long a silent server is believed in.
	sessionTimeout = 5 * time.Second
	// refusedFor is how long a session may be without a server before a fresh one is
	// tried beside it. Servers refuse a client that has seen later changes than they
	// have. So does one that was wiped, or restored from a copy; and then holders must
	// find their slots again within the time that newcomers wait.
	refusedFor = time.Second
)

// A session is the connection to the servers, and what follows it when they refuse it.
type session struct {
	servers []string
	auth    []byte // for the scheme digest; nil: none

	mu         sync.Mutex // guards all below; never held while waiting
	conn       *zk.Conn
	freshening bool
	closed     bool
	done       chan struct{} // closed at the end
}

// open begins a session. The connection is made in the background.
func (s *session) open() (err error) {
	s.done = make(chan struct{})
	s.conn, err = s.dial()
	return err
}

func (s *session) dial() (*zk.Conn, error) {
	conn, _, err := zk.Connect(s.servers, sessionTimeout, zk.WithLogger(silent{}), zk.WithDialer(dial), zk.WithEventCallback(func(e zk.Event) {
		if e.State == zk.StateDisconnected {
			s.lost()
		}
	}))
	return conn, err
}

// now returns the connection that calls are to use.
func (s *session) now() *zk.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// login adds the account to a connection, which waits until it is made.
func (s *session) login(conn *zk.Conn) error {
	if s.auth == nil {
		return nil
	}
	return conn.AddAuth("digest", s.auth)
}

// lost sees to it that a connection that was lost comes back, as another if it must.
func (s *session) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.freshening && !s.closed {
		s.freshening = true
		go s.freshen()
	}
}

// freshen tries a fresh session now and then until there is one.
func (s *session) freshen() {
	for {
		select {
		case <-s.done:
			return
		case <-time.After(refusedFor):
		}
		if s.settled() {
			return
		}
		fresh, err := s.dial()
		if err != nil {
			continue // the addresses cannot be resolved at the moment
		}
		if !s.works(fresh) || !s.replace(fresh) {
			fresh.Close()
		}
	}
}

// settled reports whether the connection is there again, or not wanted any more.
func (s *session) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.conn.State() == zk.StateHasSession {
		s.freshening = false
		return true
	}
	return false
}

// works reports whether a server answers a connection soon.
func (s *session) works(conn *zk.Conn) bool {
	answered := make(chan error, 1)
	go func() {
		err := s.login(conn)
		if err == nil {
			_, err = conn.Sync("/")
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-time.After(sessionTimeout): // closing it ends the call left behind
	case <-s.done:
	}
	return false
}

// replace has calls use another connection, unless the present one has come back. Calls
// that wait on the old one end as those of a lost connection do.
func (s *session) replace(fresh *zk.Conn) bool {
	s.mu.Lock()
	old := s.conn
	if s.closed || old.State() == zk.StateHasSession {
		s.mu.Unlock()
		return false
	}
	s.conn = fresh
	s.mu.Unlock()
	old.Close()
	return true
}

// close ends the session. It may be called twice.
func (s *session) close() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	conn := s.conn
	s.mu.Unlock()
	if !was {
		close(s.done)
		conn.Close()
	}
}
