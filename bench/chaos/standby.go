package main

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A postgresNode is a PostgreSQL that may become a standby, or a primary that waits for one.
type postgresNode struct{ *node }

// onStandby is a PostgreSQL that waits for a standby, which an operator promotes.
func onStandby(h *host.Host, n *network.Network, _ string) (*backend, error) {
	return newPair(h, n, "postgres", "postgres://postgres:@%s/postgres?sslmode=disable", func(n *node) member { return &postgresNode{n} })
}

// begin implements [member].
func (r *postgresNode) begin() error {
	r.runs(servers.Postgres(r.host, r.args("")...))
	return nil
}

// args are the settings of a server that is a standby of an address, or a primary.
func (r *postgresNode) args(primary string) []string {
	args := []string{"-c", "cluster_name=" + r.name, "-c", "wal_keep_size=256MB", "-c", "wal_receiver_timeout=5s", "-c", "wal_sender_timeout=5s"}
	if primary != "" {
		args = append(args, "-c", "primary_conninfo=host=127.0.0.1 user=postgres port="+port(primary))
	}
	return args
}

// follow implements [member]: it is a new standby, from a copy of the primary.
func (r *postgresNode) follow(primary *node, down bool) error {
	if err := r.discard(down); err != nil {
		return err
	}
	if err := host.Attempt(func() { r.runs(servers.PostgresStandby(r.host, primary.server, r.args(primary.known)...)) }); err != nil {
		return err
	}
	if err := waitFor(primary.server, r.name); err != nil {
		return err
	}
	return await(r.name+" is a standby that the primary waits for", func() (bool, error) {
		out, err := psql(primary.server, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'")
		return out == "1", err
	})
}

// waitFor makes a server wait for a standby, or for none if the name is "".
func waitFor(s *servers.Server, standby string) error {
	for _, statement := range []string{
		fmt.Sprintf("ALTER SYSTEM SET synchronous_standby_names = '\"%s\"'", standby),
		"SELECT pg_reload_conf()",
		"CHECKPOINT", // the checkpointer publishes the setting to all sessions before it starts
	} {
		if standby == "" {
			statement = strings.Replace(statement, `""`, "", 1)
		}
		if _, err := psql(s, statement); err != nil {
			return err
		}
	}
	return nil
}

// ready implements [member]: it waits until it has all that the primary has written.
func (r *postgresNode) ready(primary *node) error {
	at, err := psql(primary.server, "SELECT pg_current_wal_flush_lsn()")
	if err != nil {
		return err
	}
	return await(r.name+" has the primary's log", func() (bool, error) {
		out, err := psql(r.server, "SELECT pg_last_wal_receive_lsn() >= '"+at+"'")
		return out == "t", err
	})
}

// promote implements [member].
func (r *postgresNode) promote() error {
	if err := waitFor(r.server, ""); err != nil {
		return err
	}
	return host.Attempt(r.server.Promote)
}
