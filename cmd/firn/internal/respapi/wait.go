package respapi

import (
	"errors"
	"slices"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/share"
)

const (
	// hotFor is the longest pause between two pipelines of a busy connection.
	hotFor = 10 * time.Millisecond
	// hotLook is how often such a connection is checked for its end; see serveDirectly.
	hotLook = time.Second
	// finalRounds bounds the reads from a connection at shutdown, and finalWait how long
	// each may take to find input.
	finalRounds = 16
	finalWait   = 20 * time.Millisecond
)

// Why the server ends a connection.
var (
	errUnfinished      = errors.New("a command was not complete in time")
	errUnauthenticated = errors.New("the client did not authenticate in time")
	errMemory          = errors.New("its address had too many unfinished commands")
	errUnread          = errors.New("its address left too many answers unread")
	errDraining        = errors.New("the server is shutting down")
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// rest prepares for a wait, and reports whether to wait. It gives memory back and sets the
// deadline. Setting one costs as much as a command, so an earlier deadline stays: the
// reader that it wakes checks again.
func (c *conn) rest() bool {
	switch {
	case c.scratch == nil:
	case c.filled == 0:
		c.release()
	case !c.keep():
		return false
	}
	if c.partial.IsZero() && !c.used.IsZero() {
		c.place.Idle(c.used)
	}
	if due := c.due(); !due.IsZero() && (c.armed.IsZero() || due.Before(c.armed)) {
		if !c.arm(due) {
			return false
		}
	}
	return true
}

// keep charges the begin of an unfinished command to its client. A connection on its descriptor gives all other memory
// back; others need a buffer to read into.
func (c *conn) keep() bool {
	n := c.filled
	if c.fd == noFD {
		if cap(c.out) > bufferSize {
			c.out = nil
		}
		c.dropBatch()
		n = len(c.in) + cap(c.out)
	}
	if !c.peer.Take(share.Memory, n) {
		return c.tooMuch()
	}
	c.kept = n
	if c.fd != noFD {
		c.left = slices.Clone(c.in[:n])
		c.filled = 0
		c.release()
	}
	return true
}

// tooMuch ends a connection whose address has no memory left.
func (c *conn) tooMuch() bool {
	c.out = nil // the refusal itself must need none
	c.failed(c.server.front.Refuse(c.peer.Refusal(share.Memory)))
	c.flush()
	c.end(errMemory)
	return false
}

// unkeep ends keep, when more input has come.
func (c *conn) unkeep() {
	if c.kept > 0 {
		c.peer.Give(share.Memory, c.kept)
		c.kept = 0
	}
}

// restore puts the begin of an unfinished command into the buffer.
func (c *conn) restore() {
	if len(c.left) > len(c.in) {
		c.in = make([]byte, maxBuffer)
	}
	c.filled = copy(c.in, c.left)
	c.left = nil
}

// due returns when the connection needs attention without input; zero: never.
func (c *conn) due() (at time.Time) {
	switch {
	case !c.partial.IsZero() || c.caller == nil:
		at = c.limit()
	case c.hot && c.fd != noFD:
		at = c.used.Add(hotLook)
	}
	if q := c.queue; q != nil && q.why == "" {
		if end := q.since.Add(c.server.cfg.TransactionTimeout); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

// limit returns when the connection ends without input; zero: never.
func (c *conn) limit() time.Time {
	switch {
	case !c.partial.IsZero():
		return c.partial.Add(c.server.cfg.ReadTimeout)
	case c.caller == nil:
		return c.unauthenticatedSince.Add(c.server.cfg.ReadTimeout)
	}
	return time.Time{}
}

// arm makes the reader wake at a time. The order, here and in wake, makes sure that the
// wake-up of a shutdown is not lost.
func (c *conn) arm(at time.Time) bool {
	c.armed = at
	err := c.net.SetReadDeadline(at)
	if c.server.draining.Load() {
		err = errors.Join(err, c.net.SetReadDeadline(past))
	}
	if err != nil {
		c.end(err)
	}
	return err == nil
}

// wake ends the wait of a connection for good. Other goroutines call it.
func (c *conn) wake() { _ = c.net.SetReadDeadline(past) } // fails where the connection has ended

// woken handles the timeouts that have passed.
func (c *conn) woken() {
	c.hot = false
	now := time.Now()
	c.expireQueue(now)
	if end := c.limit(); !end.IsZero() && !now.Before(end) {
		why := errUnfinished
		if c.partial.IsZero() {
			why = errUnauthenticated
		}
		c.end(why)
		return
	}
	c.arm(c.due())
}
