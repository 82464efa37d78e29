package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A redisNode is a Redis that others reach through its relay.
type redisNode struct {
	node
	known string // the address of its relay
	args  []string
}

// newRedis prepares the relay of a Redis.
func newRedis(net *network.Network, name string) (*redisNode, error) {
	known, err := net.Relay(network.To(name, 0))
	return &redisNode{node: node{name: name}, known: known}, err
}

// start starts it as a replica or a primary, with the addresses that it announces to others.
func (r *redisNode) start(h *host.Host, n *network.Network, of *redisNode) {
	role := "no one"
	if of != nil {
		role = strings.Replace(of.known, ":", " ", 1)
	}
	// At a start, the arguments set the role: see keepRole.
	r.args = []string{"--replicaof", role, "--replica-announce-ip", "127.0.0.1", "--replica-announce-port", port(r.known),
		"--repl-diskless-sync-delay", "0", "--repl-timeout", "5"}
	r.server = servers.Redis(h, r.args...)
	r.dying = r.keepRole
	n.Node(r.name, r.server.Addr())
}

// keepRole makes the next start keep the present role of the node, as the configuration file that
// Sentinel writes would.
func (r *redisNode) keepRole() error {
	role, err := r.role()
	if err != nil {
		return err
	}
	r.args[1] = "no one"
	if role[0] == "slave" {
		r.args[1] = role[1] + " " + role[2]
	}
	return nil
}

// role returns the answer to ROLE: master, or slave, host, port and state of the link.
func (r *redisNode) role() ([]string, error) {
	out, err := r.cli("ROLE")
	return strings.Fields(out), err
}

// cli sends it a command, not through relays.
func (r *redisNode) cli(args ...string) (string, error) { return redisCLI(r.server, args...) }

func redisCLI(s *servers.Server, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	args = append([]string{"-p", fmt.Sprint(s.Port())}, args...)
	out, err := exec.CommandContext(ctx, "redis-cli", args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil || strings.HasPrefix(text, "ERR") {
		return text, fmt.Errorf("redis-cli %q: %w: %s", args, err, text)
	}
	return text, nil
}

// waitTime bounds how long a store may take to settle.
const waitTime = 60 * time.Second

// await waits until a condition holds that a store reaches by itself.
func await(what string, is func() (bool, error)) error {
	var last error
	for deadline := time.Now().Add(waitTime); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ok, err := is()
		if ok {
			return nil
		}
		last = err
	}
	return fmt.Errorf("timeout after %v: %s: %w", waitTime, what, last)
}

// follows waits until a node is a replica that has caught up with its primary.
func (r *redisNode) follows() error {
	return await(r.name+" is a replica", func() (bool, error) {
		role, err := r.role()
		return err == nil && len(role) > 3 && role[0] == "slave" && role[3] == "connected", err
	})
}

// onReplica is a primary with a replica that only an operator promotes.
func onReplica(h *host.Host, n *network.Network, _ string) (*backend, error) {
	p := &pair{apart: map[string]bool{}}
	for k := range p.nodes {
		r, err := newRedis(n, fmt.Sprintf("redis-%d", k+1))
		if err != nil {
			return nil, err
		}
		p.nodes[k] = r
		if k == 0 {
			r.start(h, n, nil)
		} else {
			r.start(h, n, p.nodes[0])
		}
	}
	address, err := n.Relay(p.route)
	if err != nil {
		return nil, err
	}
	if err := p.nodes[1].follows(); err != nil {
		return nil, err
	}
	return &backend{
		url: "redis://" + address, clock: true, nodes: []*node{&p.nodes[0].node, &p.nodes[1].node},
		faults: slices.Concat(processFaults(), networkFaults(), nodeFaults(), []fault{
			{name: "a node cut off", weight: 4, alone: true, do: nodeCut},
			{name: "forked: a replica is promoted beside the primary and a process", weight: 6, alone: true, do: p.fork},
			{name: "primary lost: a replica that was cut off is promoted", weight: 6, alone: true, do: p.lose},
		}),
	}, nil
}

// A pair is a primary and its replica.
type pair struct {
	nodes [2]*redisNode

	mu      sync.Mutex
	primary int
	apart   map[string]bool // clients that reach the other one
}

func (p *pair) route(client string) (string, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.primary
	if p.apart[client] {
		k = 1 - k
	}
	return p.nodes[k].name, 0
}

// promote makes the replica a primary, and routes all clients but one to it.
func (p *pair) promote(w *world, apart string) error {
	old, next := p.nodes[p.primary], p.nodes[1-p.primary]
	if _, err := next.cli("REPLICAOF", "NO", "ONE"); err != nil {
		return err
	}
	p.mu.Lock()
	p.primary, p.apart[apart] = 1-p.primary, true
	p.mu.Unlock()
	w.net.Reset(func(client, node string) bool { return client != apart && node == old.name })
	return nil
}

// lose cuts off the replica, kills the primary after a while and promotes the replica, which does not
// have the latest writes. The old primary comes back as its replica.
func (p *pair) lose(w *world, a act) error {
	w.silence.leave(a.mark, time.Now())
	defer func() { w.silence.back(time.Now()) }()
	old, next := p.nodes[p.primary], p.nodes[1-p.primary]
	w.net.Block(network.Sides(next.name))
	defer w.net.Block(nil)
	time.Sleep(between(a.rng, 100*time.Millisecond, steadyWindow))
	if err := host.Attempt(old.server.Kill); err != nil {
		return err
	}
	if err := p.promote(w, ""); err != nil {
		return err
	}
	w.net.Block(nil)
	time.Sleep(between(a.rng, 0, steadyWindow))
	old.args[1] = "127.0.0.1 " + port(next.known)
	if err := host.Attempt(old.server.Restart); err != nil {
		return err
	}
	p.mu.Lock()
	clear(p.apart)
	p.mu.Unlock()
	return old.follows()
}

// port returns the port of a listener's address.
func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// fork cuts off the primary together with one process, and promotes the replica for all others.
// Afterwards the old primary becomes a replica.
func (p *pair) fork(w *world, a act) error {
	w.silence.leave(a.mark, time.Now())
	defer func() { w.silence.back(time.Now()) }()
	old, next := p.nodes[p.primary], p.nodes[1-p.primary]
	w.net.Block(network.Sides(old.name, a.on.name))
	defer w.net.Block(nil)
	if err := p.promote(w, a.on.name); err != nil {
		return err
	}
	time.Sleep(between(a.rng, 2*steadyWindow, 3*steadyWindow))
	if _, err := old.cli("REPLICAOF", "127.0.0.1", port(next.known)); err != nil {
		return err
	}
	p.mu.Lock()
	clear(p.apart)
	p.mu.Unlock()
	w.net.Block(nil)
	w.net.Reset(func(client, _ string) bool { return client == a.on.name })
	return old.follows()
}
