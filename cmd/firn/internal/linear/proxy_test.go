package linear

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A proxy stands between a process and its server, and cuts connections.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &proxy{listener: l, server: server}
	go p.serve()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		p.cut()
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
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, server) // it ends when either side does
	}()
	_, _ = io.Copy(server, client)
}

// cut ends all connections, with whatever is on its way through them: some
// requests never arrive, and some answers.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // it may be closed already
	}
	p.conns = nil
}
