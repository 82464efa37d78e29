package dial

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// MaxAnswer bounds the bytes of an answer. The largest honest one lists a pool or a namespace of CosId with all
	// of 65,536 workers used, at about 500 bytes each: 33 MB.
	MaxAnswer = 64 << 20
	// MaxPieces bounds its pieces: packets, lines, array elements. Clients make about 100 bytes of each, so
	// an answer of pieces of four bytes would take far more memory than its bytes.
	MaxPieces = 1 << 17
	// MaxPiece bounds a piece that a client allocates by its announced length. The largest is a value
	// ([store.MaxValueBytes]) in hexadecimal digits, or the state of a large cluster.
	MaxPiece = 1 << 20

	// maxOther bounds an answer that lists nothing. Clients take about five times the bytes of an answer, and a hostile
	// store would answer all calls at once. Package backend bounds how many listings a store makes at a time.
	maxOther = 1 << 20
)

// ErrMalformed means that what came from a store's address is not a store's answer. The outcome of a write
// is unknown then, as after a lost answer.
var ErrMalformed = errors.New("malformed answer")

// Malformed returns an [ErrMalformed].
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s; find out what answers at the store's address", ErrMalformed, fmt.Sprintf(format, args...))
}

// A Check follows the protocol of one connection, and refuses what the store's client would not survive:
// clients allocate what an answer announces, and panic over short packets. It sees each byte once, before the
// client does.
type Check interface {
	// Sent gets b before it is sent. It reports whether b asks for a listing: answers to other requests are bounded by
	// 1 MiB. A check that cannot know reports true.
	Sent(b []byte) (lists bool)
	// Received gets b before the client does. An error ends the connection.
	Received(b []byte) error
}

// reported is how long a report has a reason: as long as a call may take.
const reported = 10 * time.Second

// A Report keeps why a connection was ended, for clients that hide what reading returned.
type Report struct{ last atomic.Pointer[reason] }

type reason struct {
	err error
	at  time.Time
}

// Err returns the latest reason of the last 10 s, or nil.
func (r *Report) Err() error {
	if last := r.last.Load(); last != nil && time.Since(last.at) < reported {
		return last.err
	}
	return nil
}

// A Guard bounds and checks what a client reads since its last write. Its methods may be called concurrently.
type Guard struct {
	Check Check // nil: none

	mu    sync.Mutex
	lists bool // what the check said last
	read  int
	err   error
}

// Sent begins a new answer.
func (g *Guard) Sent(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read = 0
	if g.Check != nil {
		g.lists = g.Check.Sent(b)
	}
}

// Received returns an [ErrMalformed] if the client must not get b, and from then on.
func (g *Guard) Received(b []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := MaxAnswer
	if g.Check != nil && !g.lists {
		most = maxOther
	}
	if g.read += len(b); g.read > most && g.err == nil {
		g.err = Malformed("more than %d MiB without a question", most>>20)
	}
	if g.err == nil && g.Check != nil {
		g.err = g.Check.Received(b)
	}
	return g.err
}

// guard returns a connection that fails once its guard refuses what is read.
func (d *Dialer) guard(c net.Conn) net.Conn {
	g := &guarded{Conn: c, report: d.Report}
	if d.Check != nil {
		g.guard.Check = d.Check()
	}
	if raw, ok := c.(syscall.Conn); ok {
		return &rawGuarded{g, raw} // clients look there whether the server has closed an idle connection
	}
	return g
}

type guarded struct {
	net.Conn
	guard  Guard
	report *Report

	answered         atomic.Bool
	served, unserved func() // nil: nothing
}

// An ender is any connection of a [Dialer].
type ender interface {
	onUse(served, unserved func())
	endUnserved() error
}

// Unserved closes a connection of a [Dialer] whose server answers, but not what it was asked. If its name has several
// addresses, the next dial begins with another one.
func Unserved(c net.Conn) error {
	if e, ok := c.(ender); ok {
		return e.endUnserved()
	}
	return c.Close()
}

// discard closes a connection that was not used. That says nothing about its address.
func discard(c net.Conn) {
	if e, ok := c.(ender); ok {
		e.onUse(nil, nil)
	}
	_ = c.Close()
}

func (c *guarded) onUse(served, unserved func()) { c.served, c.unserved = served, unserved }

func (c *guarded) endUnserved() error {
	if c.unserved != nil {
		c.unserved()
	}
	return c.Conn.Close()
}

// Close implements [net.Conn].
func (c *guarded) Close() error {
	if c.answered.Load() {
		return c.Conn.Close()
	}
	return c.endUnserved()
}

type rawGuarded struct {
	*guarded
	syscall.Conn
}

// Write implements [net.Conn].
func (c *guarded) Write(b []byte) (int, error) {
	c.guard.Sent(b)
	return c.Conn.Write(b)
}

// Read implements [net.Conn].
func (c *guarded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	refused := c.guard.Received(b[:n])
	if refused == nil {
		if n > 0 && c.answered.CompareAndSwap(false, true) && c.served != nil {
			c.served()
		}
		return n, err
	}
	_ = c.Close() // what else comes is no answer either
	refused = fmt.Errorf("%v: %w", c.RemoteAddr(), refused)
	if c.report != nil {
		c.report.last.Store(&reason{refused, time.Now()})
	}
	return 0, refused
}
