package etcdstore

import (
	"errors"
	"net"
	"os"
	"time"
)

// ageing returns a connection over HTTP/2 that, once it has lasted for life, reads as if its server announced to close it
// (GOAWAY, RFC 9113, 6.8; a gRPC server does so by MaxConnectionAge). gRPC sends no further call on it, waits for the
// answers to those that it has sent, and connects again. Simply closed, it would leave the outcome of a write unknown.
func ageing(c net.Conn, life time.Duration) net.Conn {
	a := &aged{Conn: c, ends: time.Now().Add(life), notice: goAway}
	_ = c.SetReadDeadline(a.ends) // wakes a read that waits; without it the notice comes after the next answer
	return a
}

type aged struct {
	net.Conn
	ends   time.Time
	over   bool   // ends has passed, and there is no deadline any more
	notice []byte // what is still to be read of goAway
	frames frames
}

// Read implements [net.Conn].
func (c *aged) Read(b []byte) (int, error) {
	for {
		if !c.over && !time.Now().Before(c.ends) {
			c.over = true
			// The deadline would end the next read, too, if no read was waiting when it passed.
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				return 0, err
			}
		}
		if c.over && c.frames.between() && !c.frames.away && len(c.notice) > 0 {
			n := copy(b, c.notice)
			c.notice = c.notice[n:]
			return n, nil
		}
		n, err := c.Conn.Read(b)
		c.frames.received(b[:n])
		if n > 0 || c.over || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

const (
	frameHeader = 9 // bytes: three for the length of what follows, type, flags, four for the stream

	typeHeaders, typePushPromise, typeGoAway, typeContinuation = 1, 5, 7, 9

	flagEndHeaders = 4
)

// goAway says, for the whole connection, that streams up to the greatest possible are served, and that nothing is wrong.
var goAway = []byte{0, 0, 8, typeGoAway, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// frames follows where the frames of HTTP/2 end in what is received.
type frames struct {
	header [frameHeader]byte // of the frame that is being received
	have   int               // bytes of header
	left   int               // bytes of the frame after its header
	begun  bool              // there was a frame
	open   bool              // a frame that continues the last one must follow
	away   bool              // the server has announced to close the connection itself
}

func (f *frames) received(b []byte) {
	for len(b) > 0 {
		n := min(f.left, len(b))
		f.left -= n
		b = b[n:]
		n = copy(f.header[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have == frameHeader {
			f.have, f.begun = 0, true
			f.left = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
			kind, flags := f.header[3], f.header[4]
			f.away = f.away || kind == typeGoAway
			f.open = (kind == typeHeaders || kind == typePushPromise || kind == typeContinuation) && flags&flagEndHeaders == 0
		}
	}
}

// between reports whether another frame may come next: the first is the server's settings.
func (f *frames) between() bool { return f.begun && !f.open && f.have == 0 && f.left == 0 }
