package respapi

import (
	"errors"
	"time"
)

const (
	// hotFor is the time between two pipelines of a connection that is busy.
	hotFor = 10 * time.Millisecond
	// hotLook is how often such a connection is looked at for its end; see serveDirectly.
	hotLook = time.Second
	// finalRounds bounds how often a connection is read from when the server ends, and
	// finalWait how long it may take each time to find what has come.
	finalRounds = 16
	finalWait   = 20 * time.Millisecond
)

// Why the server ends a connection.
var (
	errUnfinished      = errors.New("a command did not come to its end in time")
	errUnauthenticated = errors.New("the client did not say in time who it is")
	errDraining        = errors.New("the server is shutting down")
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// rest prepares for a wait, and reports whether to wait: it gives memory back, and sets
// until when to wait. As a deadline costs as much as a command, one that is set already
// and earlier stays: who it wakes looks again.
func (c *conn) rest() bool {
	if c.scratch != nil && c.filled == 0 {
		c.release()
	}
	if due := c.due(); !due.IsZero() && (c.armed.IsZero() || due.Before(c.armed)) {
		if !c.arm(due) {
			return false
		}
	}
	return true
}

// due is when something is to be done if nothing comes; zero: never.
func (c *conn) due() time.Time {
	switch {
	case !c.partial.IsZero():
		return c.partial.Add(c.server.cfg.ReadTimeout)
	case c.caller == nil:
		return c.unauthenticatedSince.Add(c.server.cfg.ReadTimeout)
	case c.hot && c.fd != noFD:
		return c.used.Add(hotLook)
	}
	return time.Time{}
}

// arm has the reader woken at a time. The order, here and in wake, is such that the
// one of a server that ends is not lost.
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

// wake ends the wait of a connection, for good. It is called by others.
func (c *conn) wake() { _ = c.net.SetReadDeadline(past) } // fails where the connection has ended

// woken looks at what time it is.
func (c *conn) woken() {
	c.hot = false
	due := c.due()
	if !due.IsZero() && !time.Now().Before(due) {
		why := errUnfinished
		if c.partial.IsZero() {
			why = errUnauthenticated
		}
		c.end(why)
		return
	}
	c.arm(due)
}
