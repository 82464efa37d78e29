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

// A redisNode is a Redis that may become a replica, or a primary.
type redisNode struct {
	*node
	args []string
}

// start starts it, with the address that it announces to others; role is noOne or the address of its primary.
func (r *redisNode) start(role string) {
	// At a start, the arguments set the role: see keepRole.
	r.args = []string{"--replicaof", role, "--replica-announce-ip", "127.0.0.1", "--replica-announce-port", port(r.known),
		"--repl-diskless-sync-delay", "0", "--repl-timeout", "5"}
	r.runs(servers.Redis(r.host, r.args...))
	r.dying = r.keepRole
}

// noOne is what a primary follows.
const noOne = "no one"

// begin implements [member].
func (r *redisNode) begin() error {
	r.start(noOne)
	return nil
}

// keepRole makes the next start keep the present role of the node, as the configuration file that
// Sentinel writes would.
func (r *redisNode) keepRole() error {
	role, err := r.role()
	if err != nil {
		return err
	}
	r.args[1] = noOne
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
	return newPair(h, n, "redis", "redis://%s", func(n *node) member { return &redisNode{node: n} })
}

// ready implements [member].
func (r *redisNode) ready(*node) error { return r.follows() }

// promote implements [member].
func (r *redisNode) promote() error {
	_, err := r.cli("REPLICAOF", "NO", "ONE")
	return err
}

// follow implements [member].
func (r *redisNode) follow(primary *node, down bool) error {
	role := "127.0.0.1 " + port(primary.known)
	var err error
	switch {
	case r.server == nil:
		r.start(role)
	case down:
		r.args[1] = role
		err = host.Attempt(r.server.Restart)
	default:
		_, err = r.cli("REPLICAOF", "127.0.0.1", port(primary.known))
	}
	if err != nil {
		return err
	}
	return r.follows()
}

// port returns the port of a listener's address.
func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
