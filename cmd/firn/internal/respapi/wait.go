package respapi

import (
	"errors"
	"time"
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
	errDraining        = errors.New("the server is shutting down")
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// rest prepares for a wait, and reports whether to wait. It gives memory back and sets the
// deadline. Setting one costs as much as a command, so an earlier deadline stays: the
// reader that it wakes checks again.
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

// due returns when the connection needs attention without input; zero: never.
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
