package etcdstore

import (
	"context"
	"errors"
	"maps"
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
	// avoidance is how long a member that was silent is not dialed. It answers pings, and would get its share of the calls at once.
	avoidance = 30 * time.Second
	// leave is the least time between two connections that are closed because their members have no leader. Without it,
	// calls would dial as fast as they fail.
	leave = time.Second
	// closing is how long the next call waits until gRPC has left a connection. Otherwise it
	// could be sent on that, and its outcome would be unknown.
	closing = time.Second
)

// dialing returns a dialer of connections that are closed if their member hangs or has no leader. Such a member answers
// pings, so gRPC would keep them. The next connection may lead to another one behind the name: an address, or a server of
// a balancer, where it is the only one of n.
func dialing(dialer *dial.Dialer, n int) func(context.Context, string) (net.Conn, error) {
	var leaves rate
	silent := &avoided{members: n, until: map[string]time.Time{}}
	return func(ctx context.Context, member string) (net.Conn, error) {
		if silent.has(member, time.Now()) {
			return nil, errAvoided
		}
		dialed, err := dialer.Dial(ctx, "tcp", member)
		if err != nil {
			return nil, err
		}
		life := backend.ConnectionLife - rand.N(backend.ConnectionLife/4) // those to all members must not end together
		kept := ageing(dial.Impatient(dialed, answerTimeout, false), life)
		return &connection{Conn: kept, dialed: dialed, leaves: &leaves, silenced: func(now time.Time) { silent.add(member, now) }, gone: make(chan struct{})}, nil
	}
}

var errAvoided = errors.New("it answered nothing lately; other members are asked")

// avoided are the members that were silent, as long as most are not: then a member that serves is among the others, if any does.
type avoided struct {
	members int

	mu    sync.Mutex
	until map[string]time.Time
}

func (a *avoided) add(member string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until[member] = now.Add(avoidance)
}

func (a *avoided) has(member string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	_, has := a.until[member]
	return has && 2*len(a.until) < a.members
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
	dialed   net.Conn
	leaves   *rate
	silenced func(now time.Time) // is told when the connection is closed for silence

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
		return !c.leaves.allows(now)
	}
	if code := status.Code(err); code != codes.Canceled && code != codes.DeadlineExceeded {
		c.answered, c.silent = now, time.Time{}
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
	if now.Sub(c.silent) < silence {
		return true
	}
	c.silenced(now)
	return false
}
