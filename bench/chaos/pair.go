package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
)

// A pair is a primary and its replica, which an operator promotes.
type pair struct {
	members [2]member

	mu      sync.Mutex
	primary int
	apart   string // the client that reaches the other one
}

// A member is a server of a pair. Its methods return once what they do has taken effect.
type member interface {
	its() *node
	begin() error              // starts it as the primary
	ready(primary *node) error // waits until it is a replica that loses nothing if it is promoted
	promote() error            // makes the replica a primary that waits for no replica
	// follow makes a new server, or a former primary, a replica of another, which waits for it from then on.
	// What only the former primary has is lost. down means that it was killed.
	follow(primary *node, down bool) error
}

func (n *node) its() *node { return n }

// discard removes a former primary with its files, if there is one; down means that it was killed.
func (n *node) discard(down bool) error {
	if n.server == nil {
		return nil
	}
	if !down {
		if err := host.Attempt(n.server.Kill); err != nil {
			return err
		}
	}
	return os.RemoveAll(n.server.Path(""))
}

// newPair returns a store with two servers of a kind, of which the first is the primary; url is a format for its address.
func newPair(h *host.Host, net *network.Network, kind, url string, of func(*node) member) (*backend, error) {
	p := &pair{}
	var nodes []*node
	for k := range p.members {
		n := newNode(h, net, fmt.Sprintf("%s-%d", kind, k+1))
		nodes, p.members[k] = append(nodes, n), of(n)
	}
	if err := p.members[0].begin(); err != nil {
		return nil, err
	}
	if err := p.members[1].follow(nodes[0], true); err != nil {
		return nil, err
	}
	return &backend{
		url: fmt.Sprintf(url, relay(h, net, p.route)), clock: true, nodes: nodes,
		faults: slices.Concat(processFaults(), networkFaults(), nodeFaults(), []fault{
			{name: "a node cut off", weight: 4, alone: true, do: nodeCut},
			{name: "forked: a replica is promoted beside the primary and a process", weight: 6, alone: true, do: p.fork},
			{name: "primary lost: a replica that was cut off is promoted", weight: 6, alone: true, do: p.lose},
		}),
	}, nil
}

func (p *pair) route(client string) (string, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.primary
	if p.apart != "" && p.apart == client {
		k = 1 - k
	}
	return p.members[k].its().name, 0
}

// both returns the primary and the replica.
func (p *pair) both() (primary, replica member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[p.primary], p.members[1-p.primary]
}

// promote makes the replica a primary, and routes all clients to it, except one that stays apart.
func (p *pair) promote(w *world, apart string) error {
	old, next := p.both()
	if err := next.promote(); err != nil {
		return err
	}
	p.mu.Lock()
	p.primary, p.apart = 1-p.primary, apart
	p.mu.Unlock()
	w.net.Reset(func(client, node string) bool { return client != apart && node == old.its().name })
	return nil
}

// together sends all clients to the primary again.
func (p *pair) together() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apart = ""
}

// lose cuts off the replica, kills the primary after a while and promotes the replica, which does not
// have the latest writes. The old primary comes back as its replica.
func (p *pair) lose(w *world, a act) error {
	defer w.away(a)()
	old, next := p.both()
	if err := next.ready(old.its()); err != nil {
		return err
	}
	w.net.Block(network.Sides(next.its().name))
	defer w.net.Block(nil)
	time.Sleep(between(a.rng, 100*time.Millisecond, steadyWindow))
	if err := host.Attempt(old.its().server.Kill); err != nil {
		return err
	}
	if err := p.promote(w, ""); err != nil {
		return err
	}
	w.net.Block(nil)
	time.Sleep(between(a.rng, 0, steadyWindow))
	return old.follow(next.its(), true)
}

// fork cuts off the primary together with one process, and promotes the replica for all others.
// Afterwards the old primary becomes a replica.
func (p *pair) fork(w *world, a act) error {
	defer w.away(a)()
	old, next := p.both()
	if err := next.ready(old.its()); err != nil {
		return err
	}
	w.net.Block(network.Sides(old.its().name, a.on.name))
	defer w.net.Block(nil)
	if err := p.promote(w, a.on.name); err != nil {
		return err
	}
	time.Sleep(between(a.rng, 2*steadyWindow, 3*steadyWindow))
	w.net.Block(nil)
	if err := old.follow(next.its(), false); err != nil {
		return err
	}
	p.together()
	w.net.Reset(func(client, _ string) bool { return client == a.on.name })
	return nil
}
