package server

import (
	"bytes"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A guard bounds the memory that the bytes of a connection occupy before Firn sees a request: messages of an unfinished TLS
// handshake, the fields of an unfinished head, and HTTP/2's own answers, to PINGs for example, that the client does not
// read. The libraries bound these for each connection, but one address has thousands.
type guard struct {
	first   int32 // phase after the handshake
	phase   atomic.Int32
	came    atomic.Int64 // bytes in this phase
	charged atomic.Int64 // bytes of memory for them
	http2   atomic.Bool  // the connection has one of the client's places for HTTP/2
	writing sync.Mutex   // held during a write
}

// The phases of a connection.
const (
	handshake = iota
	head      // of a request over HTTP/1, or the silence before it
	request   // is under way, or the protocol charges what it reads itself
	frames    // of HTTP/2, which bounds heads itself
)

// costs say how many bytes of a phase cost nothing, and how many bytes of memory each further one may become. In a head, a
// field of four bytes is a key, a slice and a string.
var costs = [...]struct{ free, each int64 }{handshake: {4 << 10, 2}, head: {512, 40}}

// errShare ends a connection whose address has its share of memory in unfinished requests, or of HTTP/2 connections.
var errShare net.Error = shareError{}

type shareError struct{}

func (shareError) Error() string {
	return "the address has its share of unfinished requests or of HTTP/2 connections"
}
func (shareError) Timeout() bool   { return false }
func (shareError) Temporary() bool { return false }

// newGuard returns the guard of a connection of a listener.
func newGuard(of share.Resource, encrypted bool) *guard {
	g := &guard{first: request}
	switch of {
	case share.HTTPConnections:
		g.first = head
	case share.HTTP2Connections: // Accept has taken its place
		g.first = frames
	}
	if !encrypted {
		g.phase.Store(g.first)
	}
	return g
}

// admit charges bytes that were read. It reports whether the client may have them.
func (g *guard) admit(b []byte, client *share.Client) bool {
	switch phase := g.phase.Load(); phase {
	case request:
		return true
	case frames:
		// Who does not read our answers gets no more of them.
		g.writing.Lock()
		g.writing.Unlock()
		return true
	default:
		if phase == head && g.came.Load() == 0 && bytes.HasPrefix(b, []byte("PRI ")) {
			return g.upgrade(client)
		}
		cost := costs[phase]
		now := g.came.Add(int64(len(b)))
		memory := (now - max(now-int64(len(b)), cost.free)) * cost.each
		if memory <= 0 {
			return true
		}
		if !client.Take(share.Memory, int(memory)) {
			return false
		}
		g.charged.Add(memory)
		return true
	}
}

// upgrade makes it a connection of HTTP/2, if the client may have one more.
func (g *guard) upgrade(client *share.Client) bool {
	if !client.Take(share.HTTP2Connections, 1) {
		return false
	}
	g.http2.Store(true)
	g.enter(frames, client)
	return true
}

// enter begins a phase, and ends the charge of the one before. HTTP/2 lasts.
func (g *guard) enter(phase int32, client *share.Client) {
	if g.phase.Load() == frames {
		return
	}
	g.came.Store(0)
	g.phase.Store(phase)
	if n := g.charged.Swap(0); n > 0 {
		client.Give(share.Memory, int(n))
	}
}

// end gives back what a closed connection has. Who takes something for a connection calls it again if the connection was
// closed meanwhile.
func (g *guard) end(client *share.Client) {
	if n := g.charged.Swap(0); n > 0 {
		client.Give(share.Memory, int(n))
	}
	if g.http2.Swap(false) {
		client.Give(share.HTTP2Connections, 1)
	}
}

// forConnection completes the TLS configuration of one connection, which is its own: the phase of the handshake ends with
// it, and it offers HTTP/2 only if the client may have one more such connection.
func forConnection(config *tls.Config, hello *tls.ClientHelloInfo) *tls.Config {
	c := counted(hello.Conn)
	if c == nil {
		return config
	}
	if c.guard.first == head && c.client.Full(share.HTTP2Connections) {
		config.NextProtos = []string{"http/1.1"}
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != "h2" || c.guard.first == frames {
			c.guard.enter(c.guard.first, c.client)
			return nil
		}
		if !c.guard.upgrade(c.client) {
			return errShare
		}
		c.endIfClosed()
		return nil
	}
	return config
}
