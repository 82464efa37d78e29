package zkstore_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// The codes of requests that tests wait for.
const (
	getData = 4
	setData = 5
	multi   = 14
)

// A proxy stands between a store and its server.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	conns []net.Conn
	cut   bool
	hold  func(op int32) // sees each request before it goes on
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: server}
	go p.serve()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		p.setCut(true)
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // the test is over
		}
		go p.join(c)
	}
}

func (p *proxy) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	cut := p.cut
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	if cut {
		return
	}
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, server) // it ends when either side does
	}()
	for first := true; ; first = false {
		var size [4]byte
		if _, err := io.ReadFull(client, size[:]); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(client, request); err != nil {
			return
		}
		if !first { // that one makes the session and has no code
			p.see(int32(binary.BigEndian.Uint32(request[4:])))
		}
		if _, err := server.Write(append(size[:], request...)); err != nil {
			return
		}
	}
}

func (p *proxy) see(op int32) {
	p.mu.Lock()
	hold := p.hold
	p.mu.Unlock()
	if hold != nil {
		hold(op)
	}
}

// setHold has hold see each request before it goes on, and so keep it.
func (p *proxy) setHold(hold func(op int32)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = hold
}

// setCut ends all connections, and those that come, until it is set to false.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for _, c := range p.conns {
		_ = c.Close() // it may be closed already
	}
	p.conns = nil
}
