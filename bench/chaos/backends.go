package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A backend is a running real store.
type backend struct {
	url     string // for its users
	clock   bool   // it has one of its own
	forgets bool   // faults remove its contents, so no counters are in it
	nodes   []*node
	faults  []fault
	beyond  []fault // faults that Firn documents it does not survive
	wipe    func() error
}

// A node is a server of a store, which others reach through its relay.
type node struct {
	name   string
	host   *host.Host
	net    *network.Network
	known  string          // the address of its relay
	server *servers.Server // nil before its first start
	dying  func() error    // called before it is killed, to keep its role for the next start; nil: its files keep it
}

// newNode prepares a node and its relay.
func newNode(h *host.Host, net *network.Network, name string) *node {
	return &node{name: name, host: h, net: net, known: relay(h, net, network.To(name, 0))}
}

// relay starts a relay, and returns its address.
func relay(h *host.Host, net *network.Network, route network.Route) string {
	address, err := net.Relay(route)
	if err != nil {
		h.Fatal(err)
	}
	return address
}

// runs records its server, which has more addresses than the one for clients.
func (n *node) runs(s *servers.Server, more ...string) {
	n.server = s
	n.net.Node(n.name, append([]string{s.Addr()}, more...)...)
}

// A maker starts a store whose users go through a network.
type maker struct {
	name string
	long bool // it is not in the short form
	make func(h *host.Host, n *network.Network, dir string) (*backend, error)
}

var makers = []maker{
	{"file", false, onFolder},
	{"sqlite", false, onSQLite},
	{"redis", false, onRedis},
	{"redis-replica", false, onReplica},
	{"redis-sentinel", false, onSentinel},
	{"redis-cluster", false, onCluster},
	{"mariadb", false, onMariaDB},
	{"mariadb-replica", false, onSemiSync},
	{"mariadb-galera", true, onGalera},
	{"postgres", false, onPostgres},
	{"postgres-standby", false, onStandby},
	{"etcd", false, onEtcd},
	{"zookeeper", false, onZooKeeper},
	{"redis-set-back", false, setBack(onRedis, wipeRedis)},
	{"mariadb-set-back", true, setBack(onMariaDB, wipeMariaDB)},
	{"postgres-set-back", true, setBack(onPostgres, wipePostgres)},
	{"etcd-set-back", true, setBack(onEtcd, wipeEtcd)},
	{"zookeeper-set-back", true, setBack(onZooKeeper, wipeZooKeeper)},
}

func onFolder(_ *host.Host, _ *network.Network, dir string) (*backend, error) {
	return &backend{url: "file:" + filepath.Join(dir, "folder"), faults: processFaults()}, nil
}

func onSQLite(_ *host.Host, _ *network.Network, dir string) (*backend, error) {
	return &backend{url: "sqlite:" + filepath.Join(dir, "firn.db"), faults: processFaults()}, nil
}

// single returns a store with one server; url is a format for its address.
func single(h *host.Host, net *network.Network, name, url string, clock bool, s *servers.Server) *backend {
	n := newNode(h, net, name)
	n.runs(s)
	return &backend{
		url: fmt.Sprintf(url, n.known), clock: clock, nodes: []*node{n},
		faults: slices.Concat(processFaults(), networkFaults(), nodeFaults()),
	}
}

func onRedis(h *host.Host, net *network.Network, _ string) (*backend, error) {
	return single(h, net, "redis", "redis://%s", true, servers.Redis(h)), nil
}

func onMariaDB(h *host.Host, net *network.Network, _ string) (*backend, error) {
	s := servers.MariaDB(h)
	_, err := mariadb(s, "CREATE DATABASE firn")
	return single(h, net, "mariadb", "mysql://root:@%s/firn", true, s), err
}

// mariadb returns what a statement selects, without names.
func mariadb(s *servers.Server, statement string) (string, error) {
	return output("mariadb", "--no-defaults", "--user=root", "--protocol=tcp", "--host=127.0.0.1", fmt.Sprintf("--port=%d", s.Port()), "--skip-column-names", "-e", statement)
}

func onPostgres(h *host.Host, net *network.Network, _ string) (*backend, error) {
	return single(h, net, "postgres", "postgres://postgres:@%s/postgres?sslmode=disable", true, servers.Postgres(h)), nil
}

func onZooKeeper(h *host.Host, net *network.Network, _ string) (*backend, error) {
	return single(h, net, "zookeeper", "zookeeper://%s/chaos", false, servers.ZooKeeper(h)), nil
}

// psql returns what a statement selects, without names.
func psql(s *servers.Server, statement string) (string, error) {
	return output("psql", "-h", "127.0.0.1", "-p", fmt.Sprint(s.Port()), "-U", "postgres", "-XAtc", statement)
}

// command runs a program and waits for its end.
func command(name string, args ...string) error {
	_, err := output(name, args...)
	return err
}

// output runs a program to its end, and returns its output without the last end of line.
func output(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitTime) // one may wait for waitTime itself
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %q: %w: %s%s", name, args, err, out, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}
