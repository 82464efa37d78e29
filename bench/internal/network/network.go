// Package network stands between programs of one machine and cuts them off from
// each other. It knows which process made a connection, so that programs that were given
// one address can be cut apart.
package network

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// A Rule says whether what a client sends to a node stays on its way, or what the node answers.
type Rule func(client, node string, answer bool) bool

// A Network is relays between clients and nodes. Its methods may be called concurrently.
type Network struct {
	mu        sync.Mutex
	changed   chan struct{} // closed when the rule changes or a connection ends
	rule      Rule
	nodes     map[string][]string // what they listen on
	names     map[int]string      // of processes
	conns     map[*conn]bool
	listeners []net.Listener
	over      bool
	running   sync.WaitGroup
}

// A conn is a connection that goes through a relay.
type conn struct {
	client net.Conn
	server net.Conn // nil until it is made
	pid    int      // of the client
	node   string
	closed bool
	dead   bool // nothing that is sent arrives any more
}

// New returns a network without relays.
func New() *Network {
	return &Network{
		changed: make(chan struct{}), nodes: map[string][]string{},
		names: map[int]string{}, conns: map[*conn]bool{},
	}
}

// Node gives the program that listens on some addresses a name, as a node and as a client.
func (n *Network) Node(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[name] = addresses
}

// Process gives a process a name as a client.
func (n *Network) Process(pid int, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[pid] = name
}

// A Route says which node a client is connected to, and to which of its addresses.
type Route func(client string) (node string, which int)

// Relay returns an address whose clients are connected by a route. The node may become
// known later.
func (n *Network) Relay(route Route) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	n.listeners = append(n.listeners, l)
	n.mu.Unlock()
	n.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			n.running.Go(func() { n.join(c, route) })
		}
	})
	return l.Addr().String(), nil
}

// To is a route to an address of one node.
func To(node string, which int) Route { return func(string) (string, int) { return node, which } }

// Block has a rule hold back what it names, until another is set: as in a network
// that loses everything, it goes on its way afterwards. Nil lets everything pass.
func (n *Network) Block(rule Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rule = rule
	n.wake()
}

// Reset ends the connections that are chosen, with what is on its way through them.
func (n *Network) Reset(chosen func(client, node string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if chosen(n.name(c.pid), c.node) {
			n.end(c)
		}
	}
}

// Hang has the connections that are chosen go on without anything ever arriving, as if a node
// on the way had forgotten them. Those that come later are not concerned.
func (n *Network) Hang(chosen func(client, node string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if chosen(n.name(c.pid), c.node) {
			c.dead = true
		}
	}
	n.wake()
}

// Close ends everything.
func (n *Network) Close() (err error) {
	n.mu.Lock()
	n.over = true
	for _, l := range n.listeners {
		err = errors.Join(err, l.Close())
	}
	for c := range n.conns {
		n.end(c)
	}
	n.mu.Unlock()
	n.running.Wait()
	return err
}

// wake has those that wait look again.
func (n *Network) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// end closes a connection. That it cannot be closed means that it is.
func (n *Network) end(c *conn) {
	c.closed = true
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
	delete(n.conns, c)
	n.wake()
}

// name returns the name of a process, by what it listens on if need be.
func (n *Network) name(pid int) string {
	if name, ok := n.names[pid]; ok || pid == 0 {
		return name
	}
	for _, address := range listensOn(pid) {
		for name, node := range n.nodes {
			if slices.Contains(node, address) {
				n.names[pid] = name
				return name
			}
		}
	}
	return ""
}

// join passes on what client and node say to each other.
func (n *Network) join(client net.Conn, route Route) {
	c := &conn{client: client, pid: owner(client.RemoteAddr())}
	n.mu.Lock()
	if n.over {
		c.closed = true
		_ = client.Close()
		n.mu.Unlock()
		return
	}
	node, which := route(n.name(c.pid))
	address := "" // of a node that is not known
	if addresses := n.nodes[node]; which < len(addresses) {
		address = addresses[which]
	}
	c.node = node
	n.conns[c] = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.end(c)
		n.mu.Unlock()
	}()
	if !n.pass(c, false) {
		return
	}
	server, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return
	}
	n.mu.Lock()
	c.server = server
	if c.closed {
		_ = server.Close()
	}
	n.mu.Unlock()
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		n.copy(c, client, server, true)
	}()
	n.copy(c, server, client, false)
	<-answers
}

// copy passes on one direction until either side ends it, and then ends both.
func (n *Network) copy(c *conn, to io.Writer, from io.Reader, answer bool) {
	buf := make([]byte, 32<<10)
	for {
		size, err := from.Read(buf)
		if size > 0 && n.pass(c, answer) && !n.isDead(c) {
			if _, failed := to.Write(buf[:size]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			break
		}
	}
	n.mu.Lock()
	n.end(c)
	n.mu.Unlock()
}

func (n *Network) isDead(c *conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return c.dead
}

// pass waits until the rule lets a direction of a connection pass, or it is dead. It returns
// false if the connection has ended before.
func (n *Network) pass(c *conn, answer bool) bool {
	for {
		n.mu.Lock()
		blocked := n.rule != nil && n.rule(n.name(c.pid), c.node, answer)
		closed, dead, changed := c.closed, c.dead, n.changed
		n.mu.Unlock()
		if closed || dead || !blocked {
			return !closed
		}
		<-changed
	}
}

// Sides returns a rule that keeps those of a group and all others apart.
func Sides(group ...string) Rule {
	return func(client, node string, _ bool) bool {
		return slices.Contains(group, client) != slices.Contains(group, node)
	}
}
