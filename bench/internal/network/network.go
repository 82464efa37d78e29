// Package network relays connections between programs on one machine and can cut them off from each
// other. It knows which process made a connection, so that it can separate programs that use the same
// address.
package network

import (
	"cmp"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// A Rule reports whether to hold back what a client sends to a node, or what the node answers.
type Rule func(client, node string, answer bool) bool

// A Network has relays between clients and nodes. Its methods may be called concurrently.
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
	dead   bool // nothing arrives any more
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

// Block sets the rule for what to hold back. Held data continues when the rule changes, as with
// retransmissions in a real network. Nil lets everything pass.
func (n *Network) Block(rule Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rule = rule
	n.wake()
}

// Reset ends the chosen connections and drops the data in transit.
func (n *Network) Reset(chosen func(client, node string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if chosen(n.name(c.pid), c.node) {
			n.end(c)
		}
	}
}

// Hang keeps the chosen connections open, but nothing arrives any more, as if a firewall had forgotten
// them. Later connections are not affected.
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

// wake makes waiting goroutines check again.
func (n *Network) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// end closes a connection. An error means that it is already closed.
func (n *Network) end(c *conn) {
	c.closed = true
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
	delete(n.conns, c)
	n.wake()
}

// name returns the name of a process, if necessary that of the node whose address it listens on.
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

// join forwards data between client and node.
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
	address := "" // stays empty for an unknown node
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
	if open, _ := n.pass(c, false); !open {
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

// copy forwards one direction until either side ends it, and then ends both.
func (n *Network) copy(c *conn, to io.Writer, from io.Reader, answer bool) {
	buf := make([]byte, 32<<10)
	for {
		size, err := from.Read(buf)
		if size > 0 {
			if open, dead := n.pass(c, answer); open && !dead {
				_, failed := to.Write(buf[:size])
				err = cmp.Or(failed, err)
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

// pass waits until the rule lets a direction of a connection pass, or the connection has ended or is dead.
func (n *Network) pass(c *conn, answer bool) (open, dead bool) {
	for {
		n.mu.Lock()
		blocked := n.rule != nil && n.rule(n.name(c.pid), c.node, answer)
		closed, dead, changed := c.closed, c.dead, n.changed
		n.mu.Unlock()
		if closed || dead || !blocked {
			return !closed, dead
		}
		<-changed
	}
}

// Sides returns a rule that separates a group from all others.
func Sides(group ...string) Rule {
	return func(client, node string, _ bool) bool {
		return slices.Contains(group, client) != slices.Contains(group, node)
	}
}
