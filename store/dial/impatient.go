package dial

import (
	"net"
	"sync"
	"time"
)

// Impatient returns a connection that is closed if the server leaves what was written unanswered for longer
// than limit: always, or only until its first answer. A server may accept connections and be stopped, and
// clients wait long for it, above all if the server may choose how long.
func Impatient(c net.Conn, limit time.Duration, always bool) net.Conn {
	return &impatient{Conn: c, limit: limit, always: always}
}

type impatient struct {
	net.Conn
	limit  time.Duration
	always bool

	mu       sync.Mutex
	waiting  *time.Timer // nil: nothing is unanswered
	answered bool
}

// Write implements [net.Conn].
func (c *impatient) Write(b []byte) (int, error) {
	c.mu.Lock()
	if c.waiting == nil && (c.always || !c.answered) {
		c.waiting = time.AfterFunc(c.limit, func() { _ = c.Conn.Close() }) // reads and writes fail then
	}
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// Read implements [net.Conn].
func (c *impatient) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.rest()
	}
	return n, err
}

// Close implements [net.Conn].
func (c *impatient) Close() error {
	c.rest()
	return c.Conn.Close()
}

func (c *impatient) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered = true; c.waiting != nil {
		c.waiting.Stop()
		c.waiting = nil
	}
}
