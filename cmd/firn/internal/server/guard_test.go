package server

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/share"
)

func newClient() (c *share.Client, memory int) {
	s := share.New(share.Limits{HTTP: 1000, Redis: 1000, Requests: 1000, Percent: 20})
	_, memory = s.Of(share.Memory)
	return s.Client("192.0.2.1:1"), memory
}

func TestUnfinishedHeadsAndHandshakesCountAsMemory(t *testing.T) {
	client, each := newClient()
	for name, c := range map[string]struct {
		encrypted   bool
		bytes, most int // of one connection, and of connections that a client may have with so many
	}{
		"small heads":       {false, 500, 1000},
		"heads of many":     {false, 8 << 10, each / (headCostOf(8<<10) - 1)},
		"hellos":            {true, 4000, 1000},
		"hellos that go on": {true, 60 << 10, each / (2 * 56 << 10)},
	} {
		var all []*guard
		for len(all) < 1000 {
			g := newGuard(share.HTTPConnections, c.encrypted)
			if !g.admit(make([]byte, c.bytes), client) {
				break
			}
			all = append(all, g)
		}
		if len(all) > c.most || len(all) < c.most-1 {
			t.Errorf("%s: %d connections, at most %d", name, len(all), c.most)
		}
		for _, g := range all {
			g.end(client)
		}
		if !client.Take(share.Memory, each) {
			t.Errorf("%s: memory was not given back", name)
		}
		client.Give(share.Memory, each)
	}
}

func headCostOf(bytes int) int { return int((int64(bytes) - costs[head].free) * costs[head].each) }

func TestAClientHasItsShareOfHTTP2Connections(t *testing.T) {
	client, _ := newClient()
	var all []*guard
	for range 1000 {
		g := newGuard(share.HTTPConnections, false)
		if !g.admit([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), client) {
			break
		}
		all = append(all, g)
	}
	if len(all) != 20 { // a fifth of a tenth of 1,000
		t.Errorf("%d connections", len(all))
	}
	all[0].end(client)
	if !newGuard(share.HTTPConnections, false).admit([]byte("PRI "), client) {
		t.Error("the place of a closed connection was not given back")
	}
}

// closedAfter has its connection closed once something was read from it.
type closedAfter struct {
	net.Conn
	close func()
}

func (c closedAfter) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.close()
	return n, err
}

// A new connection may take the place of one that is being read.
func TestAConnectionThatIsClosedWhileItIsReadKeepsNoShare(t *testing.T) {
	client, each := newClient()
	of := &connectionLimit{resource: share.HTTPConnections, clients: map[*share.Client]*connections{}, began: time.Now(), taken: prometheus.NewGauge(prometheus.GaugeOpts{})}
	for _, sent := range []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n" + strings.Repeat("a:b\r\n", 1000)} {
		ours, peer := net.Pipe()
		c := &countedConn{of: of, client: client, guard: newGuard(share.HTTPConnections, false)}
		c.Conn = closedAfter{ours, func() { _ = c.Close() }}
		client.Take(share.HTTPConnections, 1)
		of.add(c)
		var group sync.WaitGroup
		group.Go(func() { _, _ = io.WriteString(peer, sent) }) // it ends when all is read, or the connection is closed
		if n, err := c.Read(make([]byte, 8<<10)); n != len(sent) {
			t.Error(n, err)
		}
		group.Wait()
	}
	for what, n := range map[share.Resource]int{share.Memory: each, share.HTTP2Connections: 20} {
		if !client.Take(what, n) {
			t.Errorf("resource %d: not all was given back", what)
		}
	}
}

// A write that does not end stops the reads of HTTP/2.
func TestWhoReadsNoAnswersIsNotReadFrom(t *testing.T) {
	client, _ := newClient()
	overHTTP := newGuard(share.HTTPConnections, false)
	overHTTP.admit([]byte("PRI "), client)
	for name, g := range map[string]*guard{"HTTP": overHTTP, "gRPC": newGuard(share.HTTP2Connections, false)} {
		g.writing.Lock()
		read := make(chan bool)
		go func() { read <- g.admit([]byte("ping"), client) }()
		select {
		case <-read:
			t.Errorf("%s: it was read during a write", name)
		case <-time.After(10 * time.Millisecond): // the goroutine has begun, on most runs
		}
		g.writing.Unlock()
		if !<-read {
			t.Errorf("%s: it was refused", name)
		}
	}
}

func TestMemoryOfAPastLoadIsGivenBack(t *testing.T) {
	const mb = 1 << 20
	var load tidying
	looks := []struct {
		now  memory
		want bool
	}{
		{memory{1, 900 * mb, 0}, false},      // a load
		{memory{2, 900 * mb, 0}, false},      // it goes on
		{memory{2, 900 * mb, 0}, true},       // nothing was collected since: garbage, perhaps
		{memory{3, 30 * mb, 100 * mb}, true}, // freed
		{memory{4, 30 * mb, 0}, false},
		{memory{4, 30 * mb, 0}, false},
	}
	for i, look := range looks {
		if got := load.due(look.now); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
	// What is in use is looked at ever more rarely.
	var used tidying
	m := memory{1, 500 * mb, 0}
	var times int
	used.due(m)
	for range 100 {
		if used.due(m) {
			times++
			m.cycles++
			used.done(m)
		}
	}
	if times > 8 || times < 4 {
		t.Errorf("%d collections in 100 looks", times)
	}
}
