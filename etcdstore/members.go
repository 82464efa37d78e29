package etcdstore

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/firn-id/firn/store/dial"
)

const (
	// unanswered is how long a connection may leave a failed call unanswered. It is below the 2 s of a look: a part of
	// those may pass before the call is sent.
	unanswered = 1500 * time.Millisecond
	// rest is how long another member serves instead of one that did not. Each call that a hung member gets is lost. It
	// is below [dial.Timeout], which bounds a dial with its rest.
	rest = 20 * time.Second
	// closing is how long a call that goes to the next member waits until gRPC has left the connection. Otherwise it
	// could be sent on that, and its outcome would be unknown.
	closing = time.Second
)

// members closes connections to members that hang or have no leader. Their pings are answered, so gRPC keeps them.
// It dials such a member again at once if no other is connected, to reach another one behind the name: an address or
// a server of a balancer. Otherwise it rests.
type members struct {
	dialer *dial.Dialer

	mu      sync.Mutex
	open    map[string]int       // connections, by member
	rests   map[string]time.Time // until when, by member
	changed chan struct{}        // closed when a connection ends
}

func newMembers(dialer *dial.Dialer) *members {
	return &members{dialer: dialer, open: map[string]int{}, rests: map[string]time.Time{}, changed: make(chan struct{})}
}

// dial connects to a member after its rest.
func (m *members) dial(ctx context.Context, member string) (net.Conn, error) {
	for {
		left, changed := m.resting(member)
		if left <= 0 {
			break
		}
		select {
		case <-time.After(left):
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	dialed, err := m.dialer.Dial(ctx, "tcp", member)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[member]++
	return &connection{Conn: dial.Impatient(dialed, answerTimeout, false), of: m, member: member, dialed: dialed, answered: time.Now(), gone: make(chan struct{})}, nil
}

// resting returns how long a member is still to rest unless a connection ends before.
func (m *members) resting(member string) (left time.Duration, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.open {
		if other != member {
			return time.Until(m.rests[member]), m.changed
		}
	}
	return 0, nil
}

// ended closes the connection of a call that failed without a leader or an answer. A call that its caller gave up early
// says nothing about the connection, and neither does one that had company which was answered.
func (m *members) ended(at peer.Peer, begun time.Time, err error) {
	by, ok := at.LocalAddr.(localAddr)
	if !ok {
		return // it had no connection
	}
	c := by.connection
	if m.keep(c, begun, err) {
		return
	}
	_ = dial.Unserved(c.dialed) // gRPC finds it closed
	select {
	case <-c.gone:
	case <-time.After(closing):
	}
}

// keep reports whether a connection is to be kept after a call.
func (m *members) keep(c *connection, begun time.Time, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if err == nil {
		c.answered = now
		return true
	}
	if c.answered.After(begun) {
		begun = c.answered
	}
	if c.failed || !noLeader(err) && now.Sub(begun) < unanswered {
		return true
	}
	c.failed = true
	m.rests[c.member] = now.Add(rest)
	return false
}

// connection is a connection to a member.
type connection struct {
	net.Conn
	of     *members
	member string
	dialed net.Conn

	answered time.Time // the latest call, or when it was made
	failed   bool      // members closes it

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
	c.once.Do(func() {
		close(c.gone)
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		if c.of.open[c.member]--; c.of.open[c.member] == 0 {
			delete(c.of.open, c.member)
		}
		if len(c.of.open) == 0 {
			clear(c.of.rests) // none may rest if all hang
		}
		close(c.of.changed)
		c.of.changed = make(chan struct{})
	})
	return c.Conn.Close()
}
