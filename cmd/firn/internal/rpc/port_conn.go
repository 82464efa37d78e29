package rpc

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A place is what a listener knows about its connection.
type place interface {
	Client() *share.Client
	Spare() bool // above the limit: only for probes
	Idle(since time.Time)
	Busy()
}

// A conn is a connection and the account of what its client keeps the server waiting for. grpc-go hides streams from
// its handlers and can end one only if its client takes part; so a client that does not loses the connection.
type conn struct {
	net.Conn // encrypted with TLS
	port     *Port
	place    place // nil without a listener of ours
	client   *share.Client
	leave    func()
	tls      *tls.ConnectionState // nil without TLS
	remote   string
	local    net.Addr
	known    atomic.Pointer[known]

	writing atomic.Int64 // since when the client takes no byte, in Unix nanoseconds; 0: it does
	unread  atomic.Int32 // the number of requests whose message is not complete

	mu      sync.Mutex // guards the fields below
	watched bool       // it is in port.conns
	closed  bool
	active  int   // requests in flight
	arrived queue // requests whose method has not begun
	reading queue // requests whose message is not complete
	waiting queue // answers that the client has not taken
	bytes   int   // read since all messages were complete
	charged int   // of bytes, to the client's memory
}

// AuthType implements [credentials.AuthInfo].
func (*conn) AuthType() string { return "firn" }

func newConn(p *Port, raw net.Conn) *conn {
	c := &conn{Conn: raw, port: p, remote: raw.RemoteAddr().String(), local: raw.LocalAddr(), leave: func() {}}
	if place, ok := raw.(place); ok {
		c.place, c.client = place, place.Client()
	} else {
		c.client = p.cfg.Shares.Client(c.remote)
		c.leave = c.client.Leave
	}
	return c
}

// spare reports whether the connection is above the limit.
func (c *conn) spare() bool { return c.place != nil && c.place.Spare() }

// Read reads, and charges what it has read of incomplete messages to the client's memory.
func (c *conn) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	if n > 0 && c.unread.Load() > 0 {
		if full := c.charge(n); full != nil {
			return 0, errors.Join(full, c.Close())
		}
	}
	return n, err
}

// charge charges n bytes. It cannot know to which request they belong: so it charges all since the last moment at which
// every message was complete, and at most what the incomplete ones can have.
func (c *conn) charge(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += n
	more := min(c.bytes, int(c.unread.Load())*leastWindow) - c.charged
	if more <= 0 || c.closed {
		return nil
	}
	if !c.client.Take(share.Memory, more) {
		return c.client.Refusal(share.Memory)
	}
	c.charged += more
	return nil
}

// Write writes, and notes for how long the client takes nothing.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Store(time.Now().UnixNano())
	n, err := c.Conn.Write(p)
	c.writing.Store(0)
	return n, err
}

// Close closes the connection and frees what its client has of the shares.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.Conn.Close()
	}
	c.closed = true
	c.forgive()
	c.drop(func(*call) bool { return true })
	var ended []*call
	for e := c.waiting.first; e != nil; e = c.waiting.first {
		c.waiting.remove(e)
		e.answer.free() // here: Put may recycle it as soon as the lock is free
		ended = append(ended, e.answer.call)
	}
	c.mu.Unlock()
	for _, one := range ended {
		one.unref()
	}
	c.port.forget(c)
	c.leave()
	return c.Conn.Close()
}

// forgive gives the charged memory back. It is called with c.mu locked.
func (c *conn) forgive() {
	if c.charged > 0 {
		c.client.Give(share.Memory, c.charged)
	}
	c.bytes, c.charged = 0, 0
}

// errClosed is the error of requests of a closed connection.
var errClosed = failure.New(failure.StatusGone, "canceled", "the connection is closed")

// arrive adds a request.
func (c *conn) arrive(one *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	if !c.watched {
		c.watched = true
		c.port.follow(c)
	}
	if c.active++; c.active == 1 && c.place != nil {
		c.place.Busy()
	}
	one.reading.call = one
	c.arrived.add(&one.reading)
	return nil
}

// drop forgets requests whose method has not begun and never will, as where grpc-go itself refuses them.
func (c *conn) drop(over func(*call) bool) {
	for e := c.arrived.first; e != nil; {
		one, next := e.call, e.after
		if over(one) {
			c.arrived.remove(e)
			c.client.Give(one.under, 1)
			c.ended()
		}
		e = next
	}
}

// begin begins a request that has arrived: its message is not complete.
func (c *conn) begin(one *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !one.reading.queued {
		return errClosed
	}
	c.arrived.remove(&one.reading)
	c.unread.Add(1)
	if !one.patient {
		one.reading.since = time.Now()
		c.reading.add(&one.reading)
	}
	return nil
}

// complete counts a request whose message is complete, or will never be.
func (c *conn) complete(one *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.reading.queued {
		c.reading.remove(&one.reading)
	}
	if c.unread.Add(-1) == 0 {
		c.forgive()
	}
}

// end removes a request.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended()
}

// ended is end with c.mu locked.
func (c *conn) ended() {
	if c.active--; c.active == 0 && c.place != nil && !c.closed {
		c.place.Idle(time.Now())
	}
}

// send adds an answer that the client will take.
func (c *conn) send(a *answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	a.waiting.since, a.waiting.answer = time.Now(), a
	c.waiting.add(&a.waiting)
	return nil
}

// taken removes an answer that the client has taken. It reports false if Close has removed it.
func (c *conn) taken(a *answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !a.waiting.queued {
		return false
	}
	c.waiting.remove(&a.waiting)
	a.free()
	return true
}

var (
	errNotTaken   = errors.New("the client takes no bytes")
	errNotWritten = errors.New("the client has not completed a request in time")
	errNotRead    = errors.New("the client has not taken an answer in time")
)

// late returns an error if the client has kept the server waiting for too long.
func (c *conn) late(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(func(one *call) bool { return one.Err() != nil })
	switch {
	case c.closed:
		return nil
	case c.blocked(now):
		return errNotTaken
	case c.reading.longer(now, c.port.cfg.Read):
		return errNotWritten
	case c.waiting.longer(now, c.port.cfg.Write):
		return errNotRead
	}
	return nil
}

// blocked reports whether the client has taken no byte for too long.
func (c *conn) blocked(now time.Time) bool {
	since := c.writing.Load()
	return since != 0 && now.UnixNano()-since > int64(c.port.cfg.Ping)
}

// A known is the caller of the connection's latest request, and what it has proved.
type known struct {
	authority, authorization string
	caller                   *access.Caller
}

// A queue is a list of what waits for the client, the oldest first.
type queue struct{ first, last *entry }

// An entry is a request or an answer in a queue.
type entry struct {
	since         time.Time
	answer        *answer // or
	call          *call
	queued        bool
	before, after *entry
}

func (q *queue) add(e *entry) {
	e.queued = true
	if e.before = q.last; q.last != nil {
		q.last.after = e
	} else {
		q.first = e
	}
	q.last = e
}

func (q *queue) remove(e *entry) {
	if e.before != nil {
		e.before.after = e.after
	} else {
		q.first = e.after
	}
	if e.after != nil {
		e.after.before = e.before
	} else {
		q.last = e.before
	}
	e.queued, e.before, e.after = false, nil, nil
}

// longer reports whether the oldest entry has waited for longer than limit.
func (q *queue) longer(now time.Time, limit time.Duration) bool {
	return q.first != nil && now.Sub(q.first.since) > limit
}
