package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A patientConn sets fewer deadlines than its caller. For each request net/http sets and clears six, and each of them
// moves a timer, which took a twelfth of the time of a request. Nearly always the next one is later. So a patientConn
// leaves an earlier deadline in force, and when a call ends by it, begins the call again with the one that was asked for.
// Calls end at the deadlines that were asked for, as without it.
type patientConn struct {
	net.Conn
	read, write patience
}

// newPatientConn returns a connection whose first deadline after an aborted call is in force for no longer than first:
// the usual one is as near, and the others are later.
func newPatientConn(c net.Conn, first time.Duration) *patientConn {
	return &patientConn{Conn: c, read: patience{set: c.SetReadDeadline, first: first}, write: patience{set: c.SetWriteDeadline, first: first}}
}

// Read implements [net.Conn].
func (c *patientConn) Read(p []byte) (n int, err error) {
	for {
		n, err = c.Conn.Read(p)
		if n > 0 || err == nil || !c.read.goesOn(err) {
			return n, err
		}
	}
}

// Write implements [net.Conn].
func (c *patientConn) Write(p []byte) (n int, err error) {
	for {
		m, err := c.Conn.Write(p[n:])
		n += m
		if err == nil || !c.write.goesOn(err) {
			return n, err
		}
	}
}

// SetDeadline implements [net.Conn].
func (c *patientConn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.ask(t), c.write.ask(t))
}

// SetReadDeadline implements [net.Conn].
func (c *patientConn) SetReadDeadline(t time.Time) error { return c.read.ask(t) }

// SetWriteDeadline implements [net.Conn].
func (c *patientConn) SetWriteDeadline(t time.Time) error { return c.write.ask(t) }

// A patience is the deadline of reads or of writes. If one is asked for, one is in force, and that is not later.
type patience struct {
	set   func(time.Time) error
	first time.Duration

	mu      sync.Mutex // guards the fields below
	asked   time.Time  // zero: none
	inForce time.Time  // zero: none
}

// longAgo is far longer than between two deadlines of a connection. One that lies so far back was set to abort a call.
const longAgo = time.Hour

// ask sets the deadline.
func (d *patience) ask(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = t
	switch {
	case t.IsZero():
		return nil
	case d.inForce.IsZero(), t.Before(d.inForce):
	case t.Sub(d.inForce) < longAgo:
		return nil
	default:
		if first := time.Now().Add(d.first); first.Before(t) {
			t = first
		}
	}
	return d.enforce(t)
}

func (d *patience) enforce(t time.Time) error {
	d.inForce = t
	return d.set(t)
}

// goesOn reports whether a call that ended with an error goes on: the deadline that was asked for is later.
func (d *patience) goesOn(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.asked.IsZero() && !time.Now().Before(d.asked) {
		return false
	}
	return d.enforce(d.asked) == nil
}
