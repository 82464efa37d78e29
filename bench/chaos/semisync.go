package main

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A mariadbNode is a MariaDB that may become a replica, or a primary that waits for one.
type mariadbNode struct {
	*node
	args []string
}

// The roles of a server, for its next start.
const (
	isPrimary = "--rpl-semi-sync-master-enabled=1"
	isReplica = "--rpl-semi-sync-slave-enabled=1"
)

// onSemiSync is a MariaDB that waits for a replica, which an operator promotes.
func onSemiSync(h *host.Host, n *network.Network, _ string) (*backend, error) {
	return newPair(h, n, "mariadb", "mysql://root:@%s/firn", func(n *node) member { return &mariadbNode{node: n} })
}

// begin implements [member].
func (r *mariadbNode) begin() error {
	r.start(isPrimary)
	r.runs(r.server)
	_, err := mariadb(r.server, "CREATE DATABASE firn")
	return err
}

// start starts a new, empty server. role also holds at its next starts, until it changes.
func (r *mariadbNode) start(role string) {
	r.args = []string{role, "--server-id=" + r.name[len(r.name)-1:], "--log-bin", "--log-slave-updates", "--sync-binlog=1",
		// Short, so that the primary often stops waiting; longer than the second for which sqlstore believes that no
		// write waits, since follow turns that on under open sessions.
		"--rpl-semi-sync-master-timeout=1500", "--slave-net-timeout=4"}
	r.server = servers.MariaDB(r.host, r.args...)
}

// follow implements [member]: it is a new replica, from a copy of the primary.
func (r *mariadbNode) follow(primary *node, down bool) error {
	if err := r.discard(down); err != nil {
		return err
	}
	if err := host.Attempt(func() { r.start(isReplica) }); err != nil {
		return err
	}
	const client = " --no-defaults --user=root --protocol=tcp --host=127.0.0.1 --port=%d "
	copied := fmt.Sprintf("set -o pipefail; mariadb-dump"+client+"--single-transaction --master-data --gtid --databases firn | mariadb"+client,
		primary.server.Port(), r.server.Port())
	if err := command("bash", "-c", copied); err != nil {
		return err
	}
	if _, err := mariadb(r.server, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%s, MASTER_USER='root', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos; START SLAVE",
		port(primary.known))); err != nil {
		return err
	}
	if _, err := mariadb(primary.server, "SET GLOBAL rpl_semi_sync_master_enabled = 1"); err != nil {
		return err
	}
	if err := await("the primary waits for "+r.name, func() (bool, error) {
		out, err := mariadb(primary.server, "SHOW STATUS WHERE Variable_name = 'Rpl_semi_sync_master_clients' AND Value = 1")
		return out != "", err
	}); err != nil {
		return err
	}
	if err := r.ready(primary); err != nil {
		return err
	}
	r.runs(r.server) // as a replica; before, it was a store of its own
	return nil
}

// ready implements [member]: it waits until it has applied all that the primary has confirmed. At a restart MariaDB forgets
// what it has acknowledged but not yet applied, and asks the primary for that again.
func (r *mariadbNode) ready(primary *node) error {
	at, err := mariadb(primary.server, "SELECT @@gtid_binlog_pos")
	if err != nil {
		return err
	}
	for again := range 2 {
		out, err := mariadb(r.server, fmt.Sprintf("SELECT MASTER_GTID_WAIT('%s', %d)", at, int(waitTime.Seconds())))
		if err != nil || out == "0" {
			return err
		}
		if again == 0 { // as an operator would
			if _, err := mariadb(r.server, "STOP SLAVE; START SLAVE"); err != nil {
				return err
			}
		}
	}
	status, err := mariadb(r.server, "SHOW SLAVE STATUS")
	return errors.Join(fmt.Errorf("timeout after %v: %s is not at %s: %s", waitTime, r.name, at, status), err)
}

// promote implements [member]. It first applies what was acknowledged.
func (r *mariadbNode) promote() error {
	if _, err := mariadb(r.server, "STOP SLAVE IO_THREAD"); err != nil {
		return err
	}
	if err := await(r.name+" has applied what it received", func() (bool, error) {
		out, err := mariadb(r.server, "SELECT count(*) FROM information_schema.processlist WHERE command = 'Slave_SQL' AND state LIKE 'Slave has read all relay log%'")
		return out == "1", err
	}); err != nil {
		return err
	}
	r.args[0] = isPrimary
	_, err := mariadb(r.server, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL rpl_semi_sync_slave_enabled = 0, GLOBAL rpl_semi_sync_master_enabled = 0")
	return err
}
