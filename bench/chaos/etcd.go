package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// onEtcd starts three members that reach each other through relays.
func onEtcd(h *host.Host, n *network.Network, _ string) (*backend, error) {
	const members = 3
	b := &backend{}
	var peers, known, all []string
	for k := range members {
		m := newNode(h, n, fmt.Sprintf("etcd-%d", k+1))
		peer := relay(h, n, network.To(m.name, 1))
		b.nodes, known = append(b.nodes, m), append(known, m.known)
		peers, all = append(peers, "http://"+peer), append(all, m.name+"=http://"+peer)
	}
	starts := make([]func(), members)
	for k, m := range b.nodes {
		starts[k] = func() {
			peer := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(h))
			n.Node(m.name, "", peer)
			// Members are healthy once they have found each other.
			m.runs(servers.Etcd(h, "--name", m.name, "--listen-peer-urls", "http://"+peer,
				"--initial-advertise-peer-urls", peers[k], "--initial-cluster", strings.Join(all, ","), "--initial-cluster-token", "chaos"), peer)
		}
	}
	if err := host.Together(starts...); err != nil {
		return nil, err
	}
	b.url = "etcd://" + strings.Join(known, ",")
	b.faults = slices.Concat(processFaults(), networkFaults(), nodeFaults(), []fault{
		{name: "a node cut off", weight: 4, alone: true, do: nodeCut},
		{name: "a member and a process cut off", weight: 6, alone: true, do: memberCut},
	})
	return b, nil
}

// memberCut cuts off one member together with a process.
func memberCut(w *world, a act) error {
	defer w.away(a)()
	m := w.store.nodes[a.rng.IntN(len(w.store.nodes))]
	w.cut(network.Sides(m.name, a.on.name), between(a.rng, wallWindow, 2*steadyWindow))
	return nil
}
