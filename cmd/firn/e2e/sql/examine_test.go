package sql

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// finds waits for an examination to report a text about replicas. It waits because replicas connect,
// and servers apply settings, with a delay.
func finds(t *testing.T, s store.Store, verdict store.Verdict, words string) {
	t.Helper()
	var last store.Finding
	defer func() {
		if t.Failed() {
			t.Logf("the last finding: %v, %v", last.Verdict, last)
		}
	}()
	until(t, verdict.String()+" replicas: "+words, func() bool {
		found, err := s.Traits().Examine(context.Background())
		for _, f := range found {
			if f.Subject == "replicas" {
				last = f
			}
		}
		return err == nil && last.Verdict == verdict && strings.Contains(last.Says, words) && (last.Advice == "") == (verdict == store.Good)
	})
}

func TestStandbysOfPostgresThatNoWriteWaitsForAreBad(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source(e.admin(), name, ""))
	waitFor := func(names string) {
		t.Helper()
		e.raw(t, "", "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'", "SELECT pg_reload_conf()")
	}
	finds(t, s, store.Good, "none connected")
	first := servers.PostgresStandby(t, e.Server, "-c", "cluster_name=a")
	finds(t, s, store.Bad, "1, of which 1 are brought up to date afterwards")
	e.account(t, "firn", name)
	e.raw(t, name, "GRANT SELECT, INSERT, UPDATE ON firn_registers TO firn")
	finds(t, e.mustOpen(t, e.source("firn:"+password, name, "")), store.Doubtful, "may not see")
	waitFor("*")
	finds(t, s, store.Doubtful, "in the place of one")
	waitFor("a")
	finds(t, s, store.Good, "1, which have a write before it is confirmed")
	second := servers.PostgresStandby(t, e.Server, "-c", "cluster_name=b")
	waitFor("a, b")
	finds(t, s, store.Doubtful, "a write waits for 1 of them")
	waitFor("ANY 2 (a, b)")
	finds(t, s, store.Good, "2, which have")
	waitFor("unknown")
	finds(t, s, store.Bad, "2, of which 2 are")
	first.Kill()
	second.Kill()
	finds(t, s, store.Bad, "none connected, and writes wait for 1")

	// With max_wal_senders=0 the server waits for no standby, whatever its other settings.
	e = postgres(t, "-c", "synchronous_standby_names=a", "-c", "max_wal_senders=0")
	s = e.warned(t, e.fresh(t, "shop"), "")
	put(t, s, "k", 0, "no standby is waited for")
	finds(t, s, store.Good, "none connected")
}

func TestReplicasOfMySQLThatNoWriteWaitsForAreBad(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1")
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	e.account(t, "firn", name)
	plain := e.mustOpen(t, e.source("firn:"+password, name, ""))
	finds(t, s, store.Good, "none connected")
	replica := servers.MariaDBReplica(t, e.Server, "--server-id=2")
	finds(t, s, store.Bad, "1, of which 1 are")
	finds(t, plain, store.Bad, "1, of which 1 are")
	e.raw(t, "", "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	engine{replica, e.dialect, e.driver, e.key}.raw(t, "", "STOP SLAVE", "START SLAVE") // it requests acknowledgements when it connects
	finds(t, s, store.Good, "1, which have")
	on := engine{servers.MariaDBReplica(t, e.Server, "--server-id=3", "--rpl-semi-sync-slave-enabled=0"), e.dialect, e.driver, e.key}
	finds(t, s, store.Bad, "2, of which 1 are")
	until(t, "the replica to have the database", func() bool {
		var n int
		return on.connect(t, on.source("root", "", "")).QueryRow("SELECT count(*) FROM "+name+".firn_registers").Scan(&n) == nil
	})
	looks(t, on.mustOpen(t, on.source("root", name, "")), "role", store.Doubtful, "two primaries")
	on.raw(t, "", "SET GLOBAL read_only = 1")
	looks(t, on.mustOpen(t, on.source("root", name, "")), "role", store.Bad, "it is a replica")
}

// looks waits for an examination to report a text about a subject.
func looks(t *testing.T, s store.Store, subject string, verdict store.Verdict, words string) {
	t.Helper()
	until(t, subject+" "+verdict.String()+": "+words, func() bool {
		found, err := s.Traits().Examine(context.Background())
		return err == nil && slices.ContainsFunc(found, func(f store.Finding) bool {
			return f.Subject == subject && f.Verdict == verdict && strings.Contains(f.String(), words)
		})
	})
}

func TestATableOfPostgresThatNoStandbyHasIsBad(t *testing.T) {
	t.Parallel()
	e := postgres(t, "-c", "wal_level=logical")
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source(e.admin(), name, ""))
	looks(t, s, "durability", store.Good, "fsync on")
	e.raw(t, name, "ALTER TABLE firn_registers SET UNLOGGED")
	looks(t, s, "durability", store.Bad, "SET LOGGED")
	e.raw(t, name, "ALTER TABLE firn_registers SET LOGGED")
	looks(t, s, "role", store.Good, "a primary")

	// An unlogged table behind a view, and one that is a partition, are reported too.
	e.raw(t, name, "CREATE SCHEMA behind", "ALTER TABLE firn_registers SET SCHEMA behind", "CREATE VIEW firn_registers AS SELECT * FROM behind.firn_registers")
	looks(t, s, "durability", store.Bad, "no table but stands for one")
	e.raw(t, name, "DROP VIEW firn_registers", `CREATE TABLE firn_registers (LIKE behind.firn_registers INCLUDING ALL) PARTITION BY HASH (k)`,
		"CREATE UNLOGGED TABLE part PARTITION OF firn_registers FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
	looks(t, s, "durability", store.Bad, "UNLOGGED")
	e.raw(t, name, "DROP TABLE firn_registers", "ALTER TABLE behind.firn_registers SET SCHEMA public")
	looks(t, s, "durability", store.Good, "fsync on")

	// A server that applies another server's writes.
	other := e.fresh(t, "other")
	e.mustOpen(t, e.source(e.admin(), other, ""))
	e.raw(t, other, "CREATE PUBLICATION p FOR TABLE firn_registers", "SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
	e.raw(t, name, "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port="+strconv.Itoa(e.Port())+" user=postgres dbname=other' PUBLICATION p WITH (create_slot = false)")
	looks(t, s, "role", store.Bad, "a subscription")

	// One that applies them to a partition alone, and one that did so by other means.
	e.unsubscribe(t, name)
	e.raw(t, name, "ALTER TABLE firn_registers RENAME TO whole", "CREATE TABLE firn_registers (LIKE whole INCLUDING ALL) PARTITION BY HASH (k)",
		"CREATE TABLE part PARTITION OF firn_registers FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
	looks(t, s, "role", store.Good, "a primary")
	e.raw(t, other, "ALTER TABLE firn_registers RENAME TO part", "SELECT pg_create_logical_replication_slot('s2', 'pgoutput')")
	e.raw(t, name, "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port="+strconv.Itoa(e.Port())+" user=postgres dbname=other' PUBLICATION p WITH (create_slot = false, slot_name = s2)")
	looks(t, s, "role", store.Bad, "a subscription")
	e.unsubscribe(t, name)
	looks(t, s, "role", store.Good, "a primary")
	e.raw(t, name, "SELECT pg_replication_origin_create('elsewhere')")
	looks(t, s, "role", store.Doubtful, "replays another server's writes")
}

// unsubscribe drops the subscription s once its workers have ended: PostgreSQL may wait for ever for one that begins.
func (e engine) unsubscribe(t *testing.T, database string) {
	t.Helper()
	e.raw(t, database, "ALTER SUBSCRIPTION s DISABLE", "ALTER SUBSCRIPTION s SET (slot_name = NONE)")
	db := e.connect(t, e.source(e.admin(), database, ""))
	until(t, "the subscription's workers to end", func() bool {
		var workers int
		return db.QueryRow("SELECT count(pid) FROM pg_stat_subscription").Scan(&workers) == nil && workers == 0
	})
	e.raw(t, database, "DROP SUBSCRIPTION s")
}

// With these settings PostgreSQL continues to run after data was damaged or not synced.
func TestAPostgresThatSkipsDamageIsBad(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"zero_damaged_pages", "ignore_checksum_failure", "data_sync_retry"} {
		e := postgres(t, "-c", setting+"=on")
		looks(t, e.mustOpen(t, e.source(e.admin(), e.fresh(t, "shop"), "")), "durability", store.Bad, setting+" on")
	}
}

// If two standbys share a name, for example because one is a copy of the other, a write waits for only
// one of them.
func TestStandbysOfPostgresThatShareANameAreDoubtful(t *testing.T) {
	t.Parallel()
	e := postgres(t, "-c", "synchronous_standby_names=ANY 2 (a, b)")
	for _, same := range []string{"a", "A"} { // the server compares without case
		servers.PostgresStandby(t, e.Server, "-c", "cluster_name="+same)
	}
	s := e.warned(t, e.fresh(t, "shop"), "")
	finds(t, s, store.Doubtful, "in the place of one")
	put(t, s, "k", 0, "without the second")
}

// "*" matches a subscriber of tables too, and a write waits for the first that connected.
func TestASubscriberMayReplaceAStandbyInTheWait(t *testing.T) {
	t.Parallel()
	e, subscriber := postgres(t, "-c", "wal_level=logical"), postgres(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source(e.admin(), name, ""))
	e.raw(t, name, "CREATE TABLE orders (id INT PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE orders")
	subscriber.raw(t, subscriber.fresh(t, "shop"), "CREATE TABLE orders (id INT PRIMARY KEY)",
		"CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port="+strconv.Itoa(e.Port())+" user=postgres dbname=shop' PUBLICATION p")
	servers.PostgresStandby(t, e.Server)
	waitFor := func(names string) {
		t.Helper()
		e.raw(t, "", "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'", "SELECT pg_reload_conf()")
	}
	waitFor("*")
	finds(t, s, store.Doubtful, "2, and a write waits for 1 of them")
	waitFor("walreceiver")
	finds(t, s, store.Good, "1, which have")
}

// A MariaDB that is set to start as a replica rolls back its latest confirmed writes after a crash.
func TestAMySQLThatRollsBackConfirmedWritesIsBad(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1", "--sync-binlog=1", "--rpl-semi-sync-slave-enabled=1")
	looks(t, e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "")), "durability", store.Good, "sync_binlog 1")
	e = mariadb(t, "--log-bin", "--server-id=1", "--sync-binlog=1", "--init-rpl-role=SLAVE")
	looks(t, e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "")), "durability", store.Bad, "init_rpl_role")
}

func TestAClusterThatContinuesWhenItIsSplitIsBad(t *testing.T) {
	t.Parallel()
	e := galera(t)
	s := e.mustOpen(t, e.source("root", e.fresh(t, "shop"), ""))
	const without = "started without its recovered position"
	looks(t, s, "role", store.Doubtful, without)
	for _, setting := range []string{"pc.ignore_sb", "pc.ignore_quorum"} {
		e.raw(t, "", "SET GLOBAL wsrep_provider_options = '"+setting+"=true'")
		looks(t, s, "role", store.Bad, "two stores when it is split")
		e.raw(t, "", "SET GLOBAL wsrep_provider_options = '"+setting+"=false'")
	}
	looks(t, s, "role", store.Doubtful, without)
	e = galera(t, "--wsrep-start-position=6a1b3c1e-e978-11f1-ac1e-be68978a17af:7")
	looks(t, e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "")), "role", store.Good, "a primary")
}
