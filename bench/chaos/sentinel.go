package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// watched is the name by which Sentinels know the primary.
const watched = "chaos"

// A sentinelSet is a primary, two replicas and three Sentinels.
type sentinelSet struct {
	nodes     []*redisNode
	sentinels []*servers.Server
}

func onSentinel(h *host.Host, n *network.Network, _ string) (*backend, error) {
	s := &sentinelSet{}
	b := &backend{clock: true}
	for k := range 3 {
		r, role := &redisNode{node: newNode(h, n, fmt.Sprintf("redis-%d", k+1))}, noOne
		if k > 0 {
			role = "127.0.0.1 " + port(s.nodes[0].known)
		}
		r.start(role)
		s.nodes, b.nodes = append(s.nodes, r), append(b.nodes, r.node)
	}
	var known []string
	for k := range 3 {
		address, err := s.watch(h, n, fmt.Sprintf("sentinel-%d", k+1))
		if err != nil {
			return nil, err
		}
		known = append(known, address)
	}
	for _, r := range s.nodes[1:] {
		if err := r.follows(); err != nil {
			return nil, err
		}
	}
	if err := await("Sentinels know each other", s.complete); err != nil {
		return nil, err
	}
	b.url = "redis://" + strings.Join(known, ",") + "?master=" + watched
	b.faults = slices.Concat(processFaults(), networkFaults(), nodeFaults(), []fault{
		{name: "a node cut off", weight: 4, alone: true, do: nodeCut},
		{name: "forked: primary and a process cut off, Sentinels promote", weight: 8, alone: true, do: split(s.primary)},
	})
	return b, nil
}

// watch starts a Sentinel. It reaches all servers, and is reached, through relays.
func (s *sentinelSet) watch(h *host.Host, n *network.Network, name string) (string, error) {
	known := relay(h, n, network.To(name, 0))
	server := servers.Sentinel(h, watched, s.nodes[0].known, 2)
	n.Node(name, server.Addr())
	s.sentinels = append(s.sentinels, server)
	for _, c := range []string{
		"CONFIG SET announce-ip 127.0.0.1",
		"CONFIG SET announce-port " + port(known),
		// Other Sentinels may know it by its own address; from now on it announces the relay's.
		"REMOVE " + watched,
		"MONITOR " + watched + " 127.0.0.1 " + port(s.nodes[0].known) + " 2",
		"SET " + watched + " down-after-milliseconds 1000 failover-timeout 4000",
	} {
		if _, err := redisCLI(server, append([]string{"SENTINEL"}, strings.Fields(c)...)...); err != nil {
			return "", err
		}
	}
	return known, nil
}

// complete reports whether each Sentinel knows the two others and both replicas.
func (s *sentinelSet) complete() (bool, error) {
	for _, server := range s.sentinels {
		out, err := redisCLI(server, "SENTINEL", "MASTER", watched)
		if err != nil {
			return false, err
		}
		fields := strings.Fields(out)
		for _, want := range []string{"num-slaves", "num-other-sentinels"} {
			if k := slices.Index(fields, want); k < 0 || k+1 == len(fields) || fields[k+1] != "2" {
				return false, fmt.Errorf("%s: %q", want, fields)
			}
		}
	}
	return true, nil
}

// primary returns the primary according to most Sentinels.
func (s *sentinelSet) primary() (*redisNode, error) {
	votes := map[string]int{}
	for _, server := range s.sentinels {
		out, err := redisCLI(server, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", watched)
		if err != nil {
			return nil, err
		}
		votes[strings.Join(strings.Fields(out), ":")]++
	}
	for _, r := range s.nodes {
		if votes[r.known] > len(s.sentinels)/2 {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the Sentinels do not agree: %v", votes)
}

// split cuts off the primary together with one process until the others have promoted another node,
// and for some time after that. Then it waits until the former primary follows another.
func split(primary func() (*redisNode, error)) func(*world, act) error {
	return func(w *world, a act) error {
		defer w.away(a)()
		var old *redisNode
		if err := await("there is a primary", func() (ok bool, err error) {
			old, err = primary()
			return err == nil, err
		}); err != nil {
			return err
		}
		w.net.Block(network.Sides(old.name, a.on.name))
		defer w.net.Block(nil)
		if err := await("another is promoted", func() (bool, error) {
			now, err := primary()
			return err == nil && now != old, err
		}); err != nil {
			return err
		}
		w.log.printf("another was promoted instead of %s", old.name)
		time.Sleep(between(a.rng, steadyWindow, 2*steadyWindow))
		w.net.Block(nil)
		return old.follows()
	}
}
