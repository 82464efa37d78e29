//go:build unix

package servers

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy stands between a client and its server, and cuts connections. Its methods may be
// called concurrently.
type Proxy struct {
	addr    string
	forward func(server io.Writer, client io.Reader)

	mu      sync.Mutex
	server  func(connection int) string // connections count from 0
	count   int                         // since the latest Choose
	number  int
	conns   []net.Conn
	refuses bool
	silent  int // the connections before this one
	left    int // bytes until reached is called
	reached func()
}

// NewProxy starts a proxy before a server until the test ends. Forward copies a client's bytes to the
// server, until it returns; nil copies them unchanged.
func NewProxy(t testing.TB, server string, forward func(server io.Writer, client io.Reader)) *Proxy {
	t.Helper()
	if forward == nil {
		forward = func(server io.Writer, client io.Reader) { _, _ = io.Copy(server, client) } // until it is cut
	}
	p := &Proxy{forward: forward, server: func(int) string { return server }}
	t.Cleanup(func() { p.Refuse(true) })
	p.addr = Accept(t, func(c net.Conn) { go p.join(c) })
	return p
}

// Addr returns where clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Choose makes later connections lead to the server it returns for each, like a load balancer.
func (p *Proxy) Choose(server func(connection int) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server, p.count = server, 0
}

// join copies bytes between both sides. An error of Close means that the connection is already closed.
func (p *Proxy) join(client net.Conn) {
	defer func() { _ = client.Close() }()
	p.mu.Lock()
	address := p.server(p.count)
	number := p.number
	p.count++
	p.number++
	p.mu.Unlock()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	p.mu.Lock()
	refuses := p.refuses
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	if refuses {
		return
	}
	go func() {
		_, _ = io.Copy(&side{p, number, answers{p, client}}, server) // it ends when either side does
		_ = client.Close()
	}()
	p.forward(&side{p, number, server}, client)
}

// A side is one end of a connection. What is written to it is lost once the connection is silent.
type side struct {
	proxy  *Proxy
	number int
	io.Writer
}

func (s *side) Write(b []byte) (int, error) {
	s.proxy.mu.Lock()
	silent := s.number < s.proxy.silent
	s.proxy.mu.Unlock()
	if silent {
		return len(b), nil
	}
	return s.Writer.Write(b)
}

// answers is the client's end of a connection.
type answers struct {
	proxy *Proxy
	io.Writer
}

func (a answers) Write(b []byte) (int, error) {
	if reached := a.proxy.answered(len(b)); reached != nil {
		reached()
	}
	return a.Writer.Write(b)
}

// answered counts n bytes. It returns what is to be called before the client gets them, or nil.
func (p *Proxy) answered(n int) (reached func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left -= n; p.left > 0 {
		return nil
	}
	reached, p.reached = p.reached, nil
	return reached
}

// After calls reached once the servers have answered n bytes from now on, before the client gets the last of them.
func (p *Proxy) After(n int, reached func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.reached = n, reached
}

// Silence loses whatever is sent on the present connections from now on, as a firewall that has
// forgotten them does. New ones work.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = p.number
}

// Cut ends all connections, with all data in flight: some requests never arrive, and some answers.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // it may already be closed
	}
	p.conns = nil
}

// Refuse ends all connections, and new ones too, until it is called with false.
func (p *Proxy) Refuse(all bool) {
	p.mu.Lock()
	p.refuses = all
	p.mu.Unlock()
	p.Cut()
}

// Lead ends all connections, and makes new ones lead to another server.
func (p *Proxy) Lead(server string) {
	p.Choose(func(int) string { return server })
	p.Cut()
}
