package respapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A conn is a connection with its goroutine and its session.
type conn struct {
	server *Server
	net    net.Conn
	fd     uintptr // while the descriptor may be used directly; else noFD
	id     int64
	since  time.Time
	err    error // why it ends

	peer  *share.Client   // has the shares of the client's address
	ctx   context.Context // of requests: the server's, with peer
	place place           // in the limit of connections

	*scratch        // nil while there is no input
	left     []byte // the begin of an unfinished command, while scratch is nil
	kept     int    // bytes for an unfinished command that are charged to peer
	record   int    // bytes for the longest message of TLS that are charged to peer

	used    time.Time // when it was last answered
	awake   time.Time // since when it has had something to do without a pause
	flushed time.Time // when commands that wait last let earlier answers go
	partial time.Time // when an unfinished command came; zero without one
	armed   time.Time // when the reader wakes at the latest; zero: never
	closing bool      // close once the answers are written
	hot     bool      // the client sends commands continuously

	session
}

const noFD = ^uintptr(0)

// flushEvery is how long commands that wait, as for a store, withhold earlier answers.
const flushEvery = 50 * time.Millisecond

// A connection that does not pause for pauseless has not waited for its client. After maxAwake of that it lets others run:
// the scheduler would only after ten times as long.
const pauseless, maxAwake = 50 * time.Microsecond, time.Millisecond

// A place is a connection's place in a limit of connections: an idle connection may have to leave it to a new one.
type place interface {
	Counted() net.Conn
	Idle(since time.Time)
	Busy()
}

// uncounted is the place of a connection whose listener has no limit.
type uncounted struct{ net.Conn }

func (u uncounted) Counted() net.Conn { return u.Conn }
func (uncounted) Idle(time.Time)      {}
func (uncounted) Busy()               {}

// placeOf returns the place of a connection, which may be encrypted.
func placeOf(c net.Conn) place {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	if p, ok := c.(place); ok {
		return p
	}
	return uncounted{c}
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, net: nc, fd: noFD, id: s.lastID.Add(1), since: time.Now(), place: placeOf(nc)}
	c.peer = s.cfg.Service.Shares().Client(nc.RemoteAddr().String())
	c.ctx = share.With(s.ctx, c.peer)
	c.version = resp2
	return c
}

// serve answers until the client or the server ends the connection.
func (c *conn) serve() {
	defer c.server.gone(c)
	c.answer()
	if err := c.net.Close(); err != nil && c.err == nil {
		c.err = err
	}
	c.release()
	c.forgetQueue()
	c.unkeep()
	c.peer.Give(share.Memory, c.record)
	c.peer.Leave()
	c.server.cfg.Log.Debug("connection ended", "protocol", "resp", "client", c.id, "remote", c.net.RemoteAddr(), "reason", c.err)
}

// answer answers until the connection ends. A panic, which is a fault of the server, ends this connection only, as in net/http.
func (c *conn) answer() {
	defer func() {
		if why := recover(); why != nil {
			c.server.cfg.Log.Error("a command of Redis panicked", "client", c.id, "panic", why, "stack", string(debug.Stack()))
			c.end(errPanic)
		}
	}()
	if err := c.prepare(); err != nil {
		c.end(err)
	} else if tcp := tcpOf(c.place); tcp != nil && directly && !c.encrypted() {
		c.serveDirectly(tcp)
	} else {
		c.serveAny()
	}
}

var errPanic = errors.New("a fault of the server")

// prepare makes a connection ready for reading.
func (c *conn) prepare() error {
	encrypted, ok := c.net.(*tls.Conn)
	if tcp := tcpOf(c.place); tcp != nil {
		// A failure shows when the connection is used.
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: keepAliveCount})
	}
	if ok {
		ctx, cancel := context.WithTimeout(c.server.ctx, c.server.cfg.ReadTimeout)
		defer cancel()
		if err := encrypted.HandshakeContext(ctx); err != nil {
			if refused := c.server.cfg.Refused; refused != nil {
				refused(c.net.RemoteAddr().String(), err)
			}
			return err
		}
		if chains := encrypted.ConnectionState().VerifiedChains; len(chains) > 0 {
			c.certificate = chains[0][0]
		}
	}
	c.local = access.Local(c.net.LocalAddr(), c.net.RemoteAddr())
	c.identify()
	return nil
}

// tcpOf returns the TCP connection at a place, else nil.
func tcpOf(p place) *net.TCPConn {
	tcp, _ := p.Counted().(*net.TCPConn)
	return tcp
}

func (c *conn) encrypted() bool {
	_, ok := c.net.(*tls.Conn)
	return ok
}

// serveAny serves any connection, such as one with TLS.
func (c *conn) serveAny() {
	var one [1]byte // so that a connection that waits holds no buffers
	for !c.closing && c.rest() {
		into := one[:]
		if c.scratch != nil {
			into = c.space()
		}
		n, err := c.net.Read(into)
		if n > 0 {
			start := time.Now()
			if c.scratch == nil {
				c.turn(start)
				c.space()[0] = one[0]
			}
			if !c.chargeRecord(n) || !c.received(n, start) {
				return
			}
		}
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			c.end(err)
		case c.server.draining.Load():
			c.finishAny()
			c.end(errDraining)
		default:
			c.woken()
		}
	}
}

// chargeRecord charges what the TLS library keeps of its longest message, if that is long, as long as the connection lasts. N
// is of one message, and at most of our own buffer, which is half of the longest.
func (c *conn) chargeRecord(n int) bool {
	const short = 2 << 10
	memory := 4 * n // its buffer doubles, for what may be the first half
	if !c.encrypted() || n <= short || memory <= c.record {
		return true
	}
	if !c.peer.Take(share.Memory, memory-c.record) {
		return c.tooMuch()
	}
	c.record = memory
	return true
}

// finishAny answers the commands that a client sent before the shutdown: those that a read
// returns at once.
func (c *conn) finishAny() {
	for rounds := 0; rounds < finalRounds && !c.closing; rounds++ {
		until := time.Now().Add(finalWait)
		err := c.net.SetReadDeadline(until)
		if err != nil {
			return
		}
		n, err := c.net.Read(c.space())
		if n > 0 && !c.received(n, time.Now()) {
			return
		}
		// At shutdown the call that wakes all connections may come after this one has seen
		// the shutdown, and end a read early.
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(until)) {
			return
		}
	}
}

// turn takes a turn at the processors for a connection that has something to do. It has no buffers yet: of a crowd, only
// those at work need any.
func (c *conn) turn(start time.Time) {
	if start.Sub(c.used) > pauseless {
		c.awake = start
	}
	long := start.Sub(c.awake) > maxAwake
	if c.peer.Turn(long); long {
		c.awake = start
	}
}

// received answers the commands in n more bytes, which came at start, and reports whether to go on.
func (c *conn) received(n int, start time.Time) bool {
	c.place.Busy()
	c.unkeep()
	c.hot = start.Sub(c.used) < hotFor
	c.filled += n
	read, commands := c.consume()
	if len(c.out) > 0 && !c.flush() {
		return false
	}
	if c.closing {
		return false
	}
	copy(c.in, c.in[read:c.filled])
	c.filled -= read
	switch {
	case c.filled == 0:
		c.partial = time.Time{}
	case read > 0 || c.partial.IsZero():
		c.partial = start
	}
	c.used = time.Now()
	if commands > 0 {
		c.server.front.Observe(c.used.Sub(start))
		c.server.commands.Add(int64(commands))
	}
	return true
}

// consume answers the commands in the buffer, and returns their bytes and their number.
func (c *conn) consume() (read, commands int) {
	if c.generation != c.server.cfg.Service.Generation() {
		c.identify() // the client's token may have been revoked
	}
	c.flushed = time.Now()
	for read < c.filled && !c.closing {
		limits := callerLimits
		if c.caller == nil {
			limits = unauthenticatedLimits
		}
		buf := c.in[read:c.filled]
		args, n, err := c.parser.parse(buf, limits)
		if err != nil {
			c.count(failure.BadRequest("bad_request", "%v", err))
			c.out = appendError(c.out, "ERR "+err.Error())
			c.closing, c.err = true, err
			break
		}
		if n == 0 {
			break
		}
		read += n
		if len(args) == 0 {
			continue
		}
		if c.caller == nil || c.queue != nil || buf[0] != '*' || !isIncrement(args) || c.server.late.Load() {
			c.one(args)
			commands++
		} else {
			run := c.repeats(buf, n)
			c.increment(args[1], run)
			read += (run - 1) * n
			commands += run
		}
		if !c.between() {
			break
		}
	}
	return read, commands
}

// repeats returns how often in a row the buffer has the command of its first n bytes, at most as often as one call issues
// ids. A repeat needs no parser.
func (c *conn) repeats(buf []byte, n int) int {
	if len(buf) < 2*n {
		return 1
	}
	run, longest := 1, min(maxRun, c.server.front.Limits().MaxBatch())
	for same := buf[:n]; run < longest && len(buf) >= 2*n && string(buf[n:2*n]) == string(same); run++ {
		buf = buf[n:]
	}
	return run
}

// between is called after each command of a pipeline or a transaction. It reports whether to go on.
func (c *conn) between() bool {
	now := time.Now()
	// A client that has gone shows itself when its answers are written. Do not take ids for it until then.
	slow := now.Sub(c.flushed) > flushEvery
	if slow || len(c.out) >= flushAt {
		if len(c.out) > 0 && !c.flush() {
			return false
		}
		if slow {
			c.flushed = time.Now()
		}
	}
	if now.Sub(c.awake) > maxAwake {
		c.peer.Turn(true)
		c.awake = time.Now()
	}
	return true
}

// isIncrement recognizes INCR with its one argument.
func isIncrement(args [][]byte) bool {
	if len(args) != 2 || len(args[0]) != 4 {
		return false
	}
	name := args[0]
	return name[0]|32 == 'i' && name[1]|32 == 'n' && name[2]|32 == 'c' && name[3]|32 == 'r'
}

// flush writes the pending answers. It drops a client that does not read them in time.
func (c *conn) flush() bool {
	b := c.out
	c.out = c.out[:0]
	if c.fd != noFD {
		if b = b[writeNow(c.fd, b):]; len(b) == 0 {
			return true
		}
	}
	// The client does not read, or the answer is long: as long as it waits, all that the connection holds counts as memory of the client.
	waits := cap(c.out) + len(c.in)
	if c.fd == noFD && cap(c.out) <= smallFlush { // over TLS all answers come here
		waits = 0
	}
	if waits > 0 && !c.peer.Take(share.Memory, waits) {
		c.end(errUnread)
		return false
	}
	defer c.peer.Give(share.Memory, waits)
	err := c.net.SetWriteDeadline(time.Now().Add(c.server.cfg.WriteTimeout))
	if err == nil {
		_, err = c.net.Write(b)
	}
	c.peer.Turn(true)
	if err != nil {
		c.end(err)
	}
	return err == nil
}

// end records why the connection ends.
func (c *conn) end(err error) {
	c.closing = true
	if c.err == nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
}
