package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
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

// start starts it as a replica of an address, or as a primary, with the addresses that it announces to others.
func (r *redisNode) start(h *host.Host, n *network.Network, primary string) {
	role := "no one"
	if primary != "" {
		role = strings.Replace(primary, ":", " ", 1)
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
	err := fmt.Errorf("timeout after %v: %s", waitTime, what)
	if last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
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
	return newPair(n, "redis://%s", func(p *pair) error {
		for k := range p.members {
			r, err := newRedis(n, fmt.Sprintf("redis-%d", k+1))
			if err != nil {
				return err
			}
			p.members[k] = &member{
				node: &r.node, known: r.known, ready: func(*member) error { return r.follows() }, follow: r.follow,
				promote: func() error {
					_, err := r.cli("REPLICAOF", "NO", "ONE")
					return err
				},
			}
			if k == 0 {
				r.start(h, n, "")
			} else {
				r.start(h, n, p.members[0].known)
			}
		}
		return p.members[1].ready(p.members[0])
	})
}

// follow makes it a replica of another; down means that it was killed.
func (r *redisNode) follow(primary *member, down bool) error {
	if down {
		r.args[1] = "127.0.0.1 " + port(primary.known)
		if err := host.Attempt(r.server.Restart); err != nil {
			return err
		}
	} else if _, err := r.cli("REPLICAOF", "127.0.0.1", port(primary.known)); err != nil {
		return err
	}
	return r.follows()
}

// port returns the port of a listener's address.
func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
