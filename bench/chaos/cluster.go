package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A redisCluster is three primaries with a replica each.
type redisCluster struct {
	nodes []*clusterNode
	slot  int // the slot of Firn's key
}

// A clusterNode is reached through its relays, one for clients and one for other nodes.
type clusterNode struct {
	redisNode
	bus, id string
}

const clusterPrimaries = 3

func onCluster(h *host.Host, n *network.Network, _ string) (*backend, error) {
	c := &redisCluster{}
	b := &backend{clock: true}
	var known []string
	for k := range 2 * clusterPrimaries {
		r, err := startClusterNode(h, n, fmt.Sprintf("redis-%d", k+1))
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, r)
		b.nodes = append(b.nodes, r.node)
		known = append(known, r.known)
	}
	if err := c.form(); err != nil {
		return nil, err
	}
	b.url = "redis://" + strings.Join(known, ",")
	b.faults = slices.Concat(processFaults(), networkFaults(), nodeFaults(), []fault{
		{name: "a node cut off", weight: 4, alone: true, do: nodeCut},
		{name: "forked: primary and a process cut off, the cluster promotes", weight: 8, alone: true, do: split(c.primary)},
	})
	return b, nil
}

func startClusterNode(h *host.Host, n *network.Network, name string) (r *clusterNode, err error) {
	r = &clusterNode{redisNode: redisNode{node: newNode(h, n, name)}, bus: relay(h, n, network.To(name, 1))}
	s := servers.Redis(h, "--cluster-enabled", "yes", "--cluster-node-timeout", "2500", "--cluster-announce-ip", "127.0.0.1",
		"--cluster-announce-port", port(r.known), "--cluster-announce-bus-port", port(r.bus), "--repl-diskless-sync-delay", "0", "--repl-timeout", "5")
	r.runs(s, fmt.Sprintf("127.0.0.1:%d", s.Port()+10_000)) // where Redis has its bus
	r.id, err = r.cli("CLUSTER", "MYID")
	return r, err
}

// form joins the nodes to a cluster, of which the first are primaries.
func (c *redisCluster) form() error {
	args := []string{"--cluster", "create"}
	for _, r := range c.nodes {
		args = append(args, r.known+"@"+port(r.bus))
	}
	if err := command("redis-cli", append(args, "--cluster-replicas", "1", "--cluster-yes")...); err != nil {
		return err
	}
	for _, r := range c.nodes {
		if err := await("the cluster is complete", func() (bool, error) {
			out, err := r.cli("CLUSTER", "INFO")
			if strings.Contains(out, "cluster_state:ok") && strings.Contains(out, "cluster_size:3") {
				return true, nil
			}
			return false, errors.Join(err, errors.New(out))
		}); err != nil {
			return err
		}
	}
	out, err := c.nodes[0].cli("CLUSTER", "KEYSLOT", "firn")
	if err != nil {
		return err
	}
	c.slot, err = strconv.Atoi(out)
	return err
}

// primary returns the node that has the slot of Firn's key according to most nodes.
func (c *redisCluster) primary() (*redisNode, error) {
	votes := map[string]int{}
	for _, r := range c.nodes {
		out, err := r.cli("CLUSTER", "NODES")
		if err != nil {
			return nil, err
		}
		votes[c.owner(out)]++
	}
	for _, r := range c.nodes {
		if votes[r.id] > len(c.nodes)/2 {
			return &r.redisNode, nil
		}
	}
	return nil, fmt.Errorf("nodes do not agree: %v", votes)
}

// owner finds the node that has the slot: "ID ADDRESS FLAGS PRIMARY PING PONG EPOCH LINK SLOTS...".
func (c *redisCluster) owner(nodes string) string {
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		for _, slots := range fields[min(8, len(fields)):] {
			from, to, _ := strings.Cut(slots, "-")
			first, err1 := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			if errors.Join(err1, err2) == nil && first <= c.slot && c.slot <= last {
				return fields[0]
			}
		}
	}
	return ""
}
