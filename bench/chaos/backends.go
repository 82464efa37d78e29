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

// A node is a server of a store.
type node struct {
	name   string
	server *servers.Server
	dying  func() error // called before it is killed, to keep its role for the next start; nil: its files keep it
}

// A maker starts a store whose users go through a network.
type maker struct {
	name string
	make func(h *host.Host, n *network.Network, dir string) (*backend, error)
}

var makers = []maker{
	{"file", onFolder},
	{"sqlite", onSQLite},
	{"redis", onRedis},
	{"redis-replica", onReplica},
	{"redis-sentinel", onSentinel},
	{"redis-cluster", onCluster},
	{"mariadb", onMariaDB},
	{"mariadb-replica", onSemiSync},
	{"mariadb-galera", onGalera},
	{"postgres", onPostgres},
	{"postgres-standby", onStandby},
	{"etcd", onEtcd},
	{"zookeeper", onZooKeeper},
	{"redis-set-back", setBack(onRedis, wipeRedis)},
	{"mariadb-set-back", setBack(onMariaDB, wipeMariaDB)},
	{"postgres-set-back", setBack(onPostgres, wipePostgres)},
	{"etcd-set-back", setBack(onEtcd, wipeEtcd)},
	{"zookeeper-set-back", setBack(onZooKeeper, wipeZooKeeper)},
}

func onFolder(_ *host.Host, _ *network.Network, dir string) (*backend, error) {
	return &backend{url: "file:" + filepath.Join(dir, "folder"), faults: processFaults()}, nil
}

func onSQLite(_ *host.Host, _ *network.Network, dir string) (*backend, error) {
	return &backend{url: "sqlite:" + filepath.Join(dir, "firn.db"), faults: processFaults()}, nil
}

// relay starts a relay to a new node.
func relay(net *network.Network, name string, s *servers.Server) (*node, string, error) {
	net.Node(name, s.Addr())
	address, err := net.Relay(network.To(name, 0))
	return &node{name: name, server: s}, address, err
}

// single returns a store with one server; url is a format for its address.
func single(net *network.Network, name, url string, clock bool, s *servers.Server) (*backend, error) {
	n, address, err := relay(net, name, s)
	if err != nil {
		return nil, err
	}
	return &backend{
		url: fmt.Sprintf(url, address), clock: clock, nodes: []*node{n},
		faults: slices.Concat(processFaults(), networkFaults(), nodeFaults()),
	}, nil
}

func onRedis(h *host.Host, net *network.Network, _ string) (*backend, error) {
	return single(net, "redis", "redis://%s", true, servers.Redis(h))
}

func onMariaDB(h *host.Host, net *network.Network, _ string) (*backend, error) {
	s := servers.MariaDB(h)
	if _, err := mariadb(s, "CREATE DATABASE firn"); err != nil {
		return nil, err
	}
	return single(net, "mariadb", "mysql://root:@%s/firn", true, s)
}

// mariadb returns what a statement selects, without names.
func mariadb(s *servers.Server, statement string) (string, error) {
	return output("mariadb", "--no-defaults", "--user=root", "--protocol=tcp", "--host=127.0.0.1", fmt.Sprintf("--port=%d", s.Port()), "--skip-column-names", "-e", statement)
}

func onPostgres(h *host.Host, net *network.Network, _ string) (*backend, error) {
	return single(net, "postgres", "postgres://postgres:@%s/postgres?sslmode=disable", true, servers.Postgres(h))
}

func onZooKeeper(h *host.Host, net *network.Network, _ string) (*backend, error) {
	return single(net, "zookeeper", "zookeeper://%s/chaos", false, servers.ZooKeeper(h))
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
