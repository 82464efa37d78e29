package respapi

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// directly says that TCP connections are served on their descriptors.
const directly = true

// serveDirectly serves a connection on its non-blocking descriptor: the runtime wakes the
// goroutine, which needs a buffer only then.
//
// A read that did not fill the buffer has emptied the socket, and the runtime wakes us at
// the next event. So a busy connection skips the usual second read, which would find
// nothing. An end of the stream that came together with the last bytes causes no event of
// its own, so a busy connection wakes once a second to check, and others check at once.
func (c *conn) serveDirectly(tcp *net.TCPConn) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		c.end(err)
		return
	}
	ready := c.ready
	for !c.closing {
		err := raw.Read(ready)
		c.fd = noFD
		switch {
		case err == nil: // it ends
		case c.server.draining.Load():
			if err := raw.Control(c.finish); err != nil {
				c.end(err)
			}
			c.end(errDraining)
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.woken()
		default:
			c.end(err)
		}
	}
}

// ready answers the commands that have arrived. It returns true at the end of the
// connection, false to wait for more.
func (c *conn) ready(fd uintptr) bool {
	c.fd = fd
	for {
		start := time.Now()
		if c.scratch == nil {
			c.turn(start)
		}
		n, full, err := c.readNow(fd)
		switch {
		case n > 0:
			if !c.received(n, start) {
				return true
			}
			if !full && c.hot || c.server.draining.Load() {
				return !c.rest() // when the server ends, the wait does at once
			}
		case errors.Is(err, syscall.EAGAIN):
			return !c.rest()
		default:
			c.end(err)
			return true
		}
	}
}

// finish answers the commands that a client sent before the shutdown.
func (c *conn) finish(fd uintptr) {
	c.fd = fd
	for range finalRounds {
		n, _, err := c.readNow(fd)
		if err != nil || !c.received(n, time.Now()) {
			break
		}
	}
	c.fd = noFD
}

// The descriptor is non-blocking, so these calls return at once, and bypass the Go
// scheduler. Otherwise, when the kernel meanwhile runs something else on the thread, such as
// the client that was just woken, the scheduler takes the thread's processor away and starts
// another thread: with one command a batch that cost a fifth of the throughput.

// readNow reads the available bytes. Full: there may be more.
func (c *conn) readNow(fd uintptr) (n int, full bool, err error) {
	for to := c.space(); ; {
		n, _, err := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(len(to)))
		switch {
		case err == syscall.EINTR:
		case err != 0:
			return 0, false, err
		case n == 0:
			return 0, false, io.EOF
		default:
			return int(n), int(n) == len(to), nil
		}
	}
}

// writeNow writes as much as there is room for. Errors show when the rest is written.
func writeNow(fd uintptr, b []byte) int {
	for {
		n, _, err := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch err {
		case 0:
			return int(n)
		case syscall.EINTR:
		default:
			return 0
		}
	}
}
