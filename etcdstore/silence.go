package etcdstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
)

const (
	// silence is how long a connection may answer none of its calls. Then there is time left to find another member, as
	// newcomers wait 12 s for a holder; and a cluster so slow answers hardly any call in time.
	silence = 4 * time.Second
	// patience is how long a call must have waited to say something about its connection.
	patience = 1500 * time.Millisecond
	// avoidance is how long a member that was silent is not dialed, as long as others answer. It answers pings, and would
	// get its share of the calls at once.
	avoidance = 30 * time.Second
	// leave is the least time between two connections that are closed because their members have no leader. Without it,
	// calls would dial as fast as they fail.
	leave = time.Second
	// closing is how long the next call waits until gRPC has left a connection. Otherwise it
	// could be sent on that, and its outcome would be unknown.
	closing = time.Second
)

// dialing returns a dialer, for a client of the named members, of connections that are closed if their member hangs or has no leader. Such a member answers
// pings, so gRPC would keep them. The next connection may lead to another one behind the name: an address, or a server of
// a balancer.
func dialing(dialer *dial.Dialer, named []string) func(context.Context, string) (net.Conn, error) {
	var leaves rate
	all := newMembers(named)
	return func(ctx context.Context, name string) (net.Conn, error) {
		if all.avoid(name, time.Now()) {
			return nil, errAvoided
		}
		dialed, err := dialer.Dial(ctx, "tcp", name)
		if err != nil {
			all.note(name, func(m *member) { m.answers = false })
			return nil, err
		}
		life := backend.ConnectionLife - rand.N(backend.ConnectionLife/4) // those to all members must not end together
		kept := ageing(dial.Impatient(dialed, answerTimeout, false), life)
		return &connection{Conn: kept, dialed: dialed, leaves: &leaves, note: func(what func(*member)) { all.note(name, what) }, gone: make(chan struct{})}, nil
	}
}

var errAvoided = errors.New("it answered nothing lately; other members are asked")

// members is what is known of each member that the URL names. Other addresses are dialed too, as the cluster lists its
// members under addresses of its own, but calls do not go there.
type members struct {
	mu sync.Mutex
	of map[string]*member
}

type member struct {
	silent  time.Time // when it was, for so long that its connection was closed; zero once it has answered
	answers bool      // its latest call was answered, and no attempt to connect failed since
}

func newMembers(named []string) *members {
	m := &members{of: map[string]*member{}}
	for _, name := range named {
		m.of[name] = new(member)
	}
	return m
}

func (m *members) note(name string, what func(*member)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.of[name]; at != nil {
		what(at)
	}
}

// avoid reports whether a member is not to be dialed now. If all others fail, it may be the only one that serves, and a
// holder must find it before newcomers have waited for long enough. Two members never avoid each other: one that is
// silent does not answer.
func (m *members) avoid(name string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.of[name]; at == nil || now.Sub(at.silent) >= avoidance {
		return false
	}
	for other, at := range m.of {
		if other != name && at.answers {
			return true
		}
	}
	return false
}

// rate limits how often a client closes a connection because its member has no leader.
type rate struct {
	mu   sync.Mutex
	last time.Time
}

// allows reports whether one may be closed now, and counts it.
func (r *rate) allows(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() && now.Sub(r.last) < leave {
		return false
	}
	r.last = now
	return true
}

// connection is a connection to a member.
type connection struct {
	net.Conn
	dialed net.Conn
	leaves *rate
	note   func(what func(*member)) // of its member

	mu       sync.Mutex
	answered time.Time // when the latest call was
	silent   time.Time // since when none was, as calls failed; zero: the latest was answered

	once sync.Once
	gone chan struct{} // closed once gRPC does not use it any more
}

// localAddr is how a call finds its connection: gRPC tells it the address.
type localAddr struct {
	net.Addr
	connection *connection
}

// LocalAddr implements [net.Conn].
func (c *connection) LocalAddr() net.Addr { return localAddr{c.Conn.LocalAddr(), c} }

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// ended closes the connection of a call that ended if it is of no more use.
func ended(at peer.Peer, begun time.Time, err error) {
	by, ok := at.LocalAddr.(localAddr)
	if !ok { // it had no connection
		return
	}
	c := by.connection
	if c.serves(begun, time.Now(), err) {
		return
	}
	_ = dial.Unserved(c.dialed) // gRPC finds it closed
	select {
	case <-c.gone:
	case <-time.After(closing):
	}
}

// serves reports whether a connection is to be kept after a call.
func (c *connection) serves(begun, now time.Time, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if noLeader(err) {
		c.note(func(m *member) { m.answers = false })
		return !c.leaves.allows(now)
	}
	if code := status.Code(err); code != codes.Canceled && code != codes.DeadlineExceeded {
		c.answered, c.silent = now, time.Time{}
		c.note(func(m *member) {
			if m.answers = err == nil; m.answers { // a proxy without a member answers with errors
				m.silent = time.Time{}
			}
		})
		return true
	}
	if now.Sub(begun) < patience {
		return true
	}
	if c.answered.After(begun) {
		begun = c.answered
	}
	if c.silent.IsZero() {
		c.silent = begun
	}
	silent := now.Sub(c.silent) >= silence
	c.note(func(m *member) {
		m.answers = m.answers && now.Sub(c.silent) < patience
		if silent {
			m.silent = now
		}
	})
	return !silent
}
