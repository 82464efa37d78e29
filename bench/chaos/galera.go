package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A galera is a cluster of MariaDBs that all take writes.
type galera []*galeraMember

// A galeraMember reaches the others through their relays.
type galeraMember struct {
	*node
	args []string // [0] is the position at which it starts, [1] are the members that it joins
	has  int      // how many writes it had when it was killed
}

const (
	galeraAt   = "--wsrep-start-position="
	galeraNone = galeraAt + "00000000-0000-0000-0000-000000000000:-1" // it gets all from another member
	galeraJoin = "--wsrep-cluster-address=gcomm://"                   // without members it begins a cluster
)

// onGalera starts three members. A MySQL URL names one host: behind it, a relay leads each connection to the next
// member, like a proxy without health checks.
func onGalera(h *host.Host, n *network.Network, _ string) (*backend, error) {
	const members = 3
	var g galera
	var starts []func()
	join := galeraJoin
	b := &backend{clock: true}
	for k := range members {
		m := &galeraMember{node: &node{name: fmt.Sprintf("galera-%d", k+1), host: h, net: n}}
		peer := relay(h, n, network.To(m.name, 1))
		join += peer + ","
		g, b.nodes = append(g, m), append(b.nodes, m.node)
		starts = append(starts, func() { m.start(peer) })
	}
	for _, m := range g {
		m.args = []string{galeraNone, strings.TrimSuffix(join, ",")}
	}
	if err := errors.Join(g.begins(g[0], func() error { return host.Together(starts...) }), g.complete()); err != nil {
		return nil, err
	}
	if _, err := mariadb(g[0].server, "CREATE DATABASE firn"); err != nil {
		return nil, err
	}
	var next atomic.Uint32
	b.url = fmt.Sprintf("mysql://root:@%s/firn", relay(h, n, func(string) (string, int) { return g[next.Add(1)%members].name, 0 }))
	b.faults = slices.Concat(processFaults(), networkFaults(), []fault{
		{name: "store killed and restarted", weight: 5, alone: true, do: g.then(g.killed)},
		{name: "all members killed, the most advanced begins again", weight: 3, alone: true, do: g.then(g.begun)},
		{name: "store stands still", weight: 3, alone: true, do: g.then(storeStill)},
		{name: "a node cut off", weight: 4, alone: true, do: g.then(nodeCut)},
		{name: "a member and a process cut off", weight: 6, alone: true, do: g.then(memberCut)},
	})
	return b, nil
}

// start starts a new, empty member. The others learn its port from itself, and its host from the connection. So it
// listens on the port of its relay, on another host. Copies for members that join are sent directly: no fault is done then.
func (m *galeraMember) start(relay string) {
	const own = "127.0.0.2"
	peer := own + ":" + port(relay)
	m.net.Node(m.name, "", peer)
	m.args = append(m.args, "--wsrep-on=1", "--wsrep-provider=/usr/lib/galera/libgalera_smm.so", "--wsrep-node-address="+own,
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-sync-wait=1", // the URL leads to several members
		fmt.Sprintf("--wsrep-sst-receive-address=%s:%d", own, servers.FreePort(m.host)),
		fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=tcp://%s:%d;", peer, own, servers.FreePort(m.host))+
			// Shorter than the defaults, so that members notice most cuts and pauses.
			"evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S;evs.keepalive_period=PT0.5S;pc.wait_prim_timeout=PT60S")
	m.runs(servers.MariaDB(m.host, m.args...), peer)
}

// begins starts members, of which the first begins a cluster. At its later starts it joins one, as the others do.
func (g galera) begins(first *galeraMember, start func() error) error {
	join := first.args[1]
	first.args[1] = galeraJoin
	defer func() { first.args[1] = join }()
	return start()
}

// then waits after a fault until the cluster is complete again.
func (g galera) then(do func(*world, act) error) func(*world, act) error {
	return func(w *world, a act) error {
		defer w.away(a)()
		if err := do(w, a); err != nil {
			return err
		}
		return g.complete()
	}
}

// complete waits until each member has all writes of the cluster.
func (g galera) complete() error {
	for _, m := range g {
		if err := await(m.name+" is a member of the whole cluster", func() (bool, error) {
			out, err := mariadb(m.server, `SHOW STATUS WHERE (Variable_name, Value) IN
				(('wsrep_local_state_comment', 'Synced'), ('wsrep_cluster_status', 'Primary'), ('wsrep_cluster_size', '3'))`)
			return strings.Count(out, "wsrep_") == 3, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// killed kills some members, or all, which then find each other again. One that was killed alone may forget what it has.
func (g galera) killed(w *world, a act) error {
	chosen := w.some(a.rng)
	if err := g.kill(chosen, between(a.rng, 0, 5*time.Second)); err != nil {
		return err
	}
	if m := g[a.rng.IntN(len(g))]; len(chosen) == 1 && chosen[0] == m.node {
		m.args[0] = galeraNone
	}
	return each(chosen, func(n *node) { n.server.Restart() })
}

// begun does what an operator does if killed members do not find each other: the one that has most begins the cluster.
func (g galera) begun(w *world, a act) error {
	if err := g.kill(w.store.nodes, between(a.rng, 0, time.Second)); err != nil {
		return err
	}
	first := slices.MaxFunc(g, func(a, b *galeraMember) int { return cmp.Compare(a.has, b.has) })
	w.log.printf("%s begins the cluster at %d", first.name, first.has)
	err := command("sed", "-i", "s/^safe_to_bootstrap.*/safe_to_bootstrap: 1/", first.server.Path("data/grastate.dat"))
	for _, m := range g {
		err = errors.Join(err, os.RemoveAll(m.server.Path("data/gvwstate.dat"))) // whom it saw last
	}
	if err != nil {
		return err
	}
	return g.begins(first, func() error { return each(w.store.nodes, func(n *node) { n.server.Restart() }) })
}

var galeraPosition = regexp.MustCompile(`Recovered position: *(\S+:(-?\d+))`)

// kill kills members for a time. They will start at the positions that they have, as MariaDB's systemd unit makes them do.
func (g galera) kill(chosen []*node, down time.Duration) error {
	if err := each(chosen, func(n *node) { n.server.Kill() }); err != nil {
		return err
	}
	time.Sleep(down)
	for _, m := range g {
		if !slices.Contains(chosen, m.node) {
			continue
		}
		out, err := output("bash", append([]string{"-c", `PATH=$PATH:/usr/sbin; mariadbd --no-defaults --user=mysql --datadir="$0/data" \
			--tmpdir="$0" --pid-file="$0/r.pid" --innodb-log-file-size=8M --wsrep-recover "$@" 2>&1`, m.server.Path("")}, m.args[1:]...)...)
		at := galeraPosition.FindStringSubmatch(out)
		if err == nil && at == nil {
			err = fmt.Errorf("%s has no position: %s", m.name, out)
		}
		if err != nil {
			return err
		}
		m.args[0] = galeraAt + at[1]
		if m.has, err = strconv.Atoi(at[2]); err != nil {
			return err
		}
	}
	return nil
}
