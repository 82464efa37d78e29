package sql

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// Without autocommit a write would be acknowledged, invisible to other sessions and lost with its
// connection.
func TestAMySQLSessionThatDoesNotCommitIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	e.mustOpen(t, e.source("root", name, "")) // creates the table
	_, err := e.open(e.source("root", name, "autocommit=0"))
	expect(t, "by the driver's setting", err, store.ErrRefused, "autocommit=1")
	e.raw(t, "", "SET GLOBAL autocommit = 0")
	_, err = e.open(e.source("root", name, ""))
	expect(t, "by the server's", err, store.ErrRefused, "autocommit=1")
	s := e.mustOpen(t, e.source("root", name, "autocommit=1"))
	put(t, s, "k", 0, "v")
	if _, err := e.mustOpen(t, e.source("root", name, "autocommit=1")).Get(context.Background(), "k"); err != nil {
		t.Errorf("a setting that overrides the server's: %v", err)
	}
}

// A changed server setting applies to later sessions, so a running store must check each session.
func TestAutocommitSwitchedOffDuringOperationLosesNoWrite(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	written, err := s.CompareAndSwap(context.Background(), "k", 0, []byte("committed"))
	if err != nil {
		t.Fatal(err)
	}
	e.raw(t, "", "SET GLOBAL autocommit = 0")
	e.endSessions(t, name)
	for _, key := range []string{"k", "new"} {
		old := written.Revision
		if key == "new" {
			old = 0
		}
		_, err := s.CompareAndSwap(context.Background(), key, old, []byte("never committed"))
		expect(t, "a write on a session that does not commit", err, store.ErrRefused, "autocommit=1")
	}
	_, err = s.Get(context.Background(), "k")
	expect(t, "a read of a snapshot that is never renewed", err, store.ErrRefused, "autocommit=1")
	_, err = s.List(context.Background(), "")
	expect(t, "a listing of such a snapshot", err, store.ErrRefused, "autocommit=1")
	e.raw(t, "", "SET GLOBAL autocommit = 1")
	if got, err := s.Get(context.Background(), "k"); err != nil || string(got.Value) != "committed" {
		t.Errorf("once autocommit is on again: %q, %v", got.Value, err)
	}
	put(t, s, "k", written.Revision, "again")
}

// endSessions ends the idle sessions in a database, so that later calls use new ones.
func (e engine) endSessions(t *testing.T, name string) {
	t.Helper()
	admin := e.connect(t, e.source(e.admin(), "", ""))
	rows, err := admin.Query("SELECT id FROM information_schema.processlist WHERE db = ?", name)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if _, err := admin.Exec("KILL ?", id); err != nil {
			t.Fatal(err)
		}
	}
}

// A write must detect that its session is now on another server.
func TestAMySQLWriteReturnsTheLifeOfItsServer(t *testing.T) {
	t.Parallel()
	first, second := mariadb(t), mariadb(t)
	proxy := servers.NewProxy(t, first.Addr(), nil)
	lives := map[string]bool{}
	for _, e := range []engine{first, second} {
		e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "")) // creates the table
	}
	s := first.mustOpen(t, "root@tcp("+proxy.Addr()+")/shop")
	for _, e := range []engine{first, second, first} {
		proxy.Lead(e.Addr())
		var got store.Entry
		until(t, "the write to get through", func() (ok bool) {
			old, err := s.Get(context.Background(), "k")
			if err == nil || errors.Is(err, store.ErrNotFound) {
				got, err = s.CompareAndSwap(context.Background(), "k", old.Revision, []byte("v"))
			}
			return err == nil
		})
		direct, err := e.mustOpen(t, e.source("root", "shop", "")).CompareAndSwap(context.Background(), fmt.Sprint(time.Now().UnixNano()), 0, nil)
		if err != nil || got.Life == "" || got.Life != direct.Life {
			t.Errorf("a write to %s through the proxy has life %q, a direct one %q, %v", e.Addr(), got.Life, direct.Life, err)
		}
		lives[got.Life] = true

		// Containers may share a host name and a server id, and start in the same second; so may a machine
		// at each boot, if it has no clock of its own.
		var start string
		if err := e.connect(t, e.source("root", "shop", "")).QueryRow("SELECT RIGHT(UUID(), 17)").Scan(&start); err != nil || !strings.Contains(got.Life, " "+start+" ") {
			t.Errorf("life %q, %v; want the start's number and the hardware address %s", got.Life, err, start)
		}
	}
	if len(lives) != 2 {
		t.Errorf("two servers have lives %v", lives)
	}
	before := lives
	first.Kill()
	first.Restart()
	got, err := first.mustOpen(t, first.source("root", "shop", "")).CompareAndSwap(context.Background(), "after", 0, nil)
	if err != nil || before[got.Life] {
		t.Errorf("after a restart: life %q, as before, %v", got.Life, err)
	}
}

// Another user of the same connections may execute BEGIN and leave the transaction open. A write in
// that transaction would be lost with it.
func TestAWriteIsNotMadeInAnotherUsersTransaction(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "shop")
		db := e.connect(t, e.source(e.admin(), name, ""))
		db.SetMaxOpenConns(1)
		s, err := sqlstore.Open(context.Background(), db, e.dialect)
		if err != nil {
			t.Fatal(err)
		}
		revision := put(t, s, "k", 0, "v")
		for range 2 { // such a session is closed, and the second round uses a new one
			if _, err := db.Exec("BEGIN"); err != nil {
				t.Fatal(err)
			}
			written, err := s.CompareAndSwap(context.Background(), "k", revision, []byte("w"))
			switch {
			case err == nil:
				revision = written.Revision
			case !errors.Is(err, store.ErrRefused):
				t.Errorf("%v", err)
			}
			other, err := e.mustOpen(t, e.source(e.admin(), name, "")).Get(context.Background(), "k")
			if err != nil || other.Revision != revision {
				t.Errorf("another session reads revision %d, want %d, %v", other.Revision, revision, err)
			}
		}
	})
}

// Another user of the same connections, or of a pooler's sessions, may change a session's database or
// search path. Firn would find no table there, and create it.
func TestAStoreStaysInItsSchema(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		ctx := context.Background()
		name := e.fresh(t, "shop")
		db := e.connect(t, e.source(e.admin(), name, ""))
		db.SetMaxOpenConns(1)
		s, err := sqlstore.Open(ctx, db, e.dialect)
		if err != nil {
			t.Fatal(err)
		}
		revision := put(t, s, "k", 0, "v")
		leave := []string{"CREATE DATABASE `other-one`", "USE `other-one`"}
		if e.driver != "mysql" {
			leave = []string{`CREATE SCHEMA "other-one"`, `SET search_path = "other-one"`}
		}
		for _, statement := range leave {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Get(ctx, "k"); err != nil {
			t.Error(err)
		}
		put(t, s, "k", revision, "w")
		if list, err := s.List(ctx, ""); err != nil || len(list) != 1 {
			t.Error(list, err)
		}
		if e.driver != "mysql" { // MySQL does not report the previous database
			_, err := sqlstore.Open(ctx, db, e.dialect)
			expect(t, "a session with another search path", err, store.ErrRefused, "other-one", "public", "search_path")
		}
	})
}

func TestASessionsOwnSearchPathIsUsed(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	e.raw(t, name, `CREATE SCHEMA "My own"`)
	put(t, e.mustOpen(t, e.source(e.admin(), name, "search_path=%22My%20own%22,public")), "k", 0, "v")
	e.raw(t, name, `SELECT k FROM "My own".firn_registers`)
	e.mustOpen(t, e.source(e.admin(), name, "search_path=nowhere,%22My%20own%22,public"))
	_, err := e.open(e.source(e.admin(), name, "search_path=nowhere"))
	expect(t, "no schema at all", err, store.ErrRefused, "search_path", "nowhere")
}

// PostgreSQL skips schemas in search_path that are missing or that the account may not use. A table made in the next
// one would be a second store, and repeat the ids of the first.
func TestPostgresMakesNoSecondStoreInAnotherSchema(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	e.raw(t, "", "CREATE ROLE firn LOGIN")
	const made = "firn_registers (" // the statement offered
	refused := func(t *testing.T, database, user, settings string, words ...string) {
		t.Helper()
		_, err := e.open(e.source(user, database, settings))
		expect(t, "a new table", err, store.ErrRefused, append(words, "search_path", made)...)
	}
	t.Run("the account lost USAGE", func(t *testing.T) {
		name := e.fresh(t, "revoked")
		e.raw(t, name, "CREATE SCHEMA firn AUTHORIZATION firn")
		e.mustOpen(t, e.source(e.admin(), name, ""))
		e.raw(t, name, "GRANT SELECT, INSERT, UPDATE ON firn_registers TO firn")
		before := e.mustOpen(t, e.source("firn", name, ""))
		put(t, before, "k", 0, "v")
		e.raw(t, name, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
		refused(t, name, "firn", "", "in schema public", "GRANT USAGE")
		e.raw(t, name, "DROP SCHEMA firn")
		refused(t, name, "firn", "", "in schema public", "GRANT USAGE") // no schema at all
		e.raw(t, name, "GRANT USAGE ON SCHEMA public TO firn")
		if _, err := e.mustOpen(t, e.source("firn", name, "")).Get(context.Background(), "k"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a schema may not be used, and none has a table", func(t *testing.T) {
		name := e.fresh(t, "unusable")
		e.raw(t, name, "CREATE SCHEMA app", "GRANT CREATE ON SCHEMA public TO firn")
		refused(t, name, "firn", "search_path=app,public", "schema app", "GRANT USAGE")
		e.raw(t, name, "CREATE SCHEMA firn")
		refused(t, name, "firn", "", "schema firn", "GRANT USAGE") // "$user"
	})
	t.Run("a schema is being restored", func(t *testing.T) {
		name := e.fresh(t, "restored")
		e.raw(t, name, "CREATE SCHEMA app")
		const path = "search_path=app,public"
		put(t, e.mustOpen(t, e.source(e.admin(), name, path)), "k", 0, "v")
		e.raw(t, name, "ALTER SCHEMA app RENAME TO aside")
		refused(t, name, e.admin(), path, "in schema aside")
		e.raw(t, name, "DROP SCHEMA aside CASCADE")
		refused(t, name, e.admin(), path, "schema app", "does not exist")
		refused(t, name, e.admin(), "search_path=%22$user%22,%22A,%20%22%22b%22,public", `"A, ""b"`)
	})
	t.Run("the role's search_path is lost, or set later", func(t *testing.T) {
		name := e.fresh(t, "role")
		e.raw(t, name, "CREATE SCHEMA shop")
		e.mustOpen(t, e.source(e.admin(), name, "search_path=shop"))
		refused(t, name, e.admin(), "", "in schema shop")
		e.raw(t, name, "ALTER TABLE shop.firn_registers SET SCHEMA public", "ALTER ROLE postgres IN DATABASE "+name+" SET search_path = shop")
		refused(t, name, e.admin(), "", "in schema public")
	})
	t.Run("a schema whose name has quotes", func(t *testing.T) {
		name := e.fresh(t, "quotes")
		e.raw(t, name, `CREATE SCHEMA "o'bri""en"`)
		put(t, e.mustOpen(t, e.source(e.admin(), name, "search_path=%22o%27bri%22%22en%22")), "k", 0, "v")
	})
	t.Run("a second store is meant", func(t *testing.T) {
		name := e.fresh(t, "two")
		e.raw(t, name, "CREATE SCHEMA own", "CREATE SCHEMA hand")
		first := e.mustOpen(t, e.source(e.admin(), name, ""))
		put(t, first, "k", 0, "v")
		looks(t, first, "role", store.Good, "a primary")
		second := e.mustOpen(t, e.source(e.admin(), name, "search_path=own"))
		put(t, second, "k", 0, "of the second")
		looks(t, first, "role", store.Doubtful, "another store in schema own")
		looks(t, second, "role", store.Doubtful, "another store in schema public")
		refused(t, name, e.admin(), "search_path=hand,pg_temp", "in schema own, public")
		e.raw(t, name, strings.Replace(e.dialect.Schema(), sqlstore.Table, "hand."+sqlstore.Table, 1))
		put(t, e.mustOpen(t, e.source(e.admin(), name, "search_path=hand,pg_temp")), "k", 0, "of the third")
	})
}

func TestAPostgresTableWithoutItsPrimaryKeyIsExplained(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source(e.admin(), name, ""))
	e.raw(t, name, "ALTER TABLE firn_registers DROP CONSTRAINT firn_registers_pkey")
	_, err := s.CompareAndSwap(context.Background(), "k", 0, []byte("v"))
	expect(t, "a table without its primary key", err, store.ErrRefused, "ADD PRIMARY KEY (k)")
	e.raw(t, name, "ALTER TABLE firn_registers ADD PRIMARY KEY (k)")
	put(t, s, "k", 0, "v")
}

func TestAMySQLMayTreatEmptyStringsAsNULL(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	s := e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "sql_mode=%27EMPTY_STRING_IS_NULL%27"))
	put(t, s, "k", put(t, s, "k", 0, "v"), "w")
}

func TestAListingIgnoresTheSessionsSelectLimit(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	s := e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "sql_select_limit=2"))
	for _, key := range []string{"a", "b", "c"} {
		put(t, s, key, 0, "v")
	}
	if list, err := s.List(context.Background(), ""); err != nil || len(list) != 3 {
		t.Errorf("%d of 3, %v", len(list), err)
	}
}

// A replica that runs the statements instead of applying the rows runs them under its own settings,
// and may skip them: with transaction_isolation READ-UNCOMMITTED, or autocommit off.
func TestAMySQLSessionThatLogsStatementsIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1")
	name := e.fresh(t, "shop")
	expect(t, "as statements", e.try(e.source("root", name, "binlog_format=STATEMENT")), store.ErrRefused, "binlog_format", "ROW")
	if err := e.try(e.source("root", name, "binlog_format=MIXED")); err != nil {
		t.Error(err)
	}
}

// A server may use its system's time zone, in which an hour repeats when summer time ends.
func TestTheTimeOfAMySQLIsRightInTheHourThatRepeats(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	e.raw(t, "mysql",
		"INSERT INTO time_zone (Time_zone_id, Use_leap_seconds) VALUES (7, 'N')",
		"INSERT INTO time_zone_name (Name, Time_zone_id) VALUES ('Shop', 7)",
		"INSERT INTO time_zone_transition_type VALUES (7, 0, 3600, 1, 'SHST'), (7, 1, 0, 0, 'SHT')",
		"INSERT INTO time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (7, 0, 0), (7, UNIX_TIMESTAMP() - 1800, 1)",
		"SET GLOBAL time_zone = 'Shop'")
	s := e.mustOpen(t, e.source("root", e.fresh(t, "shop"), ""))
	there, err := s.Traits().Clock.Now(context.Background())
	if off := time.Since(there).Abs(); err != nil || off > time.Minute {
		t.Errorf("half an hour after summer time has ended, the server's time is off by %v, %v", off, err)
	}
}

// An uncommitted write may still be undone, for example by a crash; a session that reads it back would
// take it for final.
func TestAMySQLSessionThatReadsUncommittedDataIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	_, err := e.open(e.source("root", name, "tx_isolation=%27READ-UNCOMMITTED%27"))
	expect(t, "by the driver's setting", err, store.ErrRefused, "READ-COMMITTED")
	e.raw(t, "", "SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	_, err = e.open(e.source("root", name, ""))
	expect(t, "by the server's", err, store.ErrRefused, "READ-COMMITTED")
	put(t, e.mustOpen(t, e.source("root", name, "tx_isolation=%27READ-COMMITTED%27")), "k", 0, "v")
}

// Unlogged writes reach no replica, and the server counts no commit as missed.
func TestAMySQLSessionThatLogsNothingIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1", "--rpl-semi-sync-master-enabled=1")
	servers.MariaDBReplica(t, e.Server, "--server-id=2")
	name := e.fresh(t, "shop")
	untilConfirmed(t, e.mustOpen(t, e.source("root", name, "")), "k", "logged")
	expect(t, "a session that logs nothing", e.try(e.source("root", name, "sql_log_bin=0")), store.ErrRefused, "sql_log_bin=1")
}

// A replica takes writes, unless it is read-only, and its primary does not have them.
func TestAMySQLReplicaThatTakesWritesIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1", "--rpl-semi-sync-master-enabled=1")
	on := engine{servers.MariaDBReplica(t, e.Server, "--server-id=2", "--log-bin"), e.dialect, e.driver, e.key}
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	untilConfirmed(t, s, "k", "by the primary")
	until(t, "the replica to have it", func() bool {
		var n int
		return on.connect(t, on.source("root", "", "")).QueryRow("SELECT count(*) FROM "+name+".firn_registers").Scan(&n) == nil && n == 1
	})
	expect(t, "a replica", on.try(on.source("root", name, "")), store.ErrRefused, "name the primary", "RESET REPLICA ALL", "rpl_semi_sync_slave_enabled off")

	// It is promoted, and the former primary follows it under an open store.
	on.raw(t, "", "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	e.raw(t, "", "SET GLOBAL rpl_semi_sync_slave_enabled = 1", fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='root', MASTER_USE_GTID=current_pos", on.Port()), "START SLAVE")
	untilConfirmed(t, on.mustOpen(t, on.source("root", name, "")), "k2", "by the promoted")
	e.raw(t, "", "SET GLOBAL rpl_semi_sync_master_enabled = 0")
	_, err := s.CompareAndSwap(context.Background(), "k3", 0, nil)
	expect(t, "a former primary, in an open session", err, store.ErrUnavailable, "name the primary")
	expect(t, "a former primary", e.try(e.source("root", name, "")), store.ErrRefused, "name the primary")
}

// A replica treats a write that is marked to be skipped, or logged as if it came from that replica, as
// done, and acknowledges it with the next write of any session.
func TestAMySQLSessionWhoseWritesAReplicaSkipsIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1")
	name := e.fresh(t, "shop")
	put(t, e.mustOpen(t, e.source("root", name, "")), "k", 0, "v")
	for _, setting := range []string{"skip_replication=1", "server_id=2"} {
		expect(t, setting, e.try(e.source("root", name, setting)), store.ErrRefused, "replica")
		db := e.connect(t, e.source("root", name, ""))
		db.SetMaxOpenConns(1)
		s, err := sqlstore.Open(context.Background(), db, e.dialect)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, setting, 0, "v")
		if _, err := db.Exec("SET SESSION " + setting); err != nil { // as another user of the connection could
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(context.Background(), "new"+setting, 0, nil)
		expect(t, setting+", set during the session", err, store.ErrRefused, "replica")
	}
}

// galera starts a cluster of one member.
func galera(t *testing.T, args ...string) engine {
	t.Helper()
	base := servers.FreePort(t)
	e := mariadb(t, append([]string{"--wsrep-on=1", "--wsrep-provider=/usr/lib/galera/libgalera_smm.so", "--wsrep-cluster-address=gcomm://",
		"--wsrep-new-cluster", "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-node-address=127.0.0.1",
		fmt.Sprintf("--wsrep-provider-options=base_port=%d;gmcast.listen_addr=tcp://127.0.0.1:%d", base, base)}, args...)...)
	admin := e.connect(t, e.source("root", "", ""))
	until(t, "the cluster to be ready", func() bool {
		var ready string
		err := admin.QueryRow("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_ready'").Scan(&ready)
		return err == nil && ready == "ON"
	})
	return e
}

// A member sends only logged writes to the others.
func TestAWriteThatGaleraDoesNotReplicateIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := galera(t, "--binlog-ignore-db=shop")
	_, err := e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "")).CompareAndSwap(context.Background(), "k", 0, nil)
	expect(t, "left out", err, store.ErrUnavailable, "no other member", "binlog_ignore_db")
	put(t, e.mustOpen(t, e.source("root", e.fresh(t, "other"), "")), "k", 0, "v")
}

// A member without quorum would answer reads with what was true before.
func TestASessionOfGaleraWithDirtyReadsIsRefused(t *testing.T) {
	t.Parallel()
	e := galera(t)
	name := e.fresh(t, "shop")
	db := e.connect(t, e.source("root", name, ""))
	db.SetMaxOpenConns(1)
	s, err := sqlstore.Open(context.Background(), db, sqlstore.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", 0, "v")
	_, err = e.open(e.source("root", name, "wsrep_dirty_reads=1"))
	expect(t, "opened with dirty reads", err, store.ErrRefused, "wsrep_dirty_reads")
	for what, read := range map[string]func() error{
		"read":   func() error { _, err := s.Get(context.Background(), "k"); return err },
		"listed": func() error { _, err := s.List(context.Background(), ""); return err },
	} {
		if _, err := db.Exec("SET SESSION wsrep_dirty_reads = 1"); err != nil { // the store closes such a session
			t.Fatal(err)
		}
		expect(t, what+" by a session that has them by now", read(), store.ErrRefused, "wsrep_dirty_reads")
		if err := read(); err != nil {
			t.Errorf("%s by the next session: %v", what, err)
		}
	}
}

// The members of a Galera cluster share one life, which differs from that of a single server.
func TestAGaleraClusterHasOneLife(t *testing.T) {
	t.Parallel()
	e := galera(t)
	name := e.fresh(t, "shop")
	life := func(key string) string {
		t.Helper()
		got, err := e.mustOpen(t, e.source("root", name, "")).CompareAndSwap(context.Background(), key, 0, nil)
		if err != nil || !strings.HasPrefix(got.Life, "galera ") {
			t.Fatalf("%s: life %q, %v", key, got.Life, err)
		}
		return got.Life
	}
	first := life("first")
	if again := life("again"); again != first {
		t.Errorf("life %q, then %q", first, again)
	}
	listed, err := e.mustOpen(t, e.source("root", name, "")).List(context.Background(), "")
	if err != nil || len(listed) != 2 {
		t.Errorf("%v, %v: the list of the members is no register of a caller", listed, err)
	}
	// Another member notes its start: its life is that of this one, too.
	e.raw(t, name, `UPDATE firn_registers SET v = CONCAT(v, ' another'), rev = rev + 2 WHERE k = '\tmembers'`)
	joined := life("joined")
	if again := life("joined, again"); joined == first || again != joined {
		t.Errorf("life %q, with another member %q, then %q", first, joined, again)
	}

	// It stops as a whole, and begins again with what it has, which may be a copy.
	e.Kill()
	if err := exec.Command("sed", "-i", "s/safe_to_bootstrap: 0/safe_to_bootstrap: 1/", e.Path("data/grastate.dat")).Run(); err != nil {
		t.Fatal(err)
	}
	e.Restart()
	until(t, "the cluster to be ready", func() bool {
		_, err := e.open(e.source("root", name, ""))
		return err == nil
	})
	if restarted := life("restarted"); restarted == joined {
		t.Errorf("life %q as before", restarted)
	}

	// A member that stops replicating is a separate store, also in sessions that began before.
	s := e.mustOpen(t, e.source("root", name, ""))
	revision := put(t, s, "open", 0, "v")
	e.raw(t, "", "SET GLOBAL wsrep_on = OFF")
	_, err = s.CompareAndSwap(context.Background(), "open", revision, nil)
	expect(t, "a member that does not replicate", err, store.ErrRefused, "wsrep_on")
	_, err = e.open(e.source("root", name, "wsrep_on=0"))
	expect(t, "a new session of it", err, store.ErrRefused, "wsrep_on")
	e.raw(t, "", "SET GLOBAL wsrep_on = ON")
	revision = put(t, s, "open", revision, "w")

	// Each other member runs statements under its own settings, which may make them change nothing.
	e.raw(t, "", "SET GLOBAL wsrep_forced_binlog_format = STATEMENT")
	_, err = s.CompareAndSwap(context.Background(), "open", revision, nil)
	expect(t, "a member that sends statements", err, store.ErrRefused, "wsrep_forced_binlog_format")
	_, err = e.open(e.source("root", name, ""))
	expect(t, "a new session of it", err, store.ErrRefused, "wsrep_forced_binlog_format")
	e.raw(t, "", "SET GLOBAL wsrep_forced_binlog_format = MIXED")
	put(t, s, "open", revision, "rows")
	_, err = e.open(e.source("root", name, "binlog_format=STATEMENT"))
	expect(t, "a session that sends statements", err, store.ErrRefused, "binlog_format")
}

// A server may convert a client's text; a key then differs from the same key of another session.
func TestAMySQLSessionThatConvertsKeysIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	put(t, e.mustOpen(t, e.source("root", name, "")), "k", 0, "v")
	for _, collation := range []string{"utf16_general_ci", "ucs2_bin", "latin1_swedish_ci", "utf8mb3_unicode_ci"} {
		_, err := e.open(e.source("root", name, "collation_connection="+collation))
		expect(t, collation, err, store.ErrRefused, "charset=utf8mb4")
	}
	for _, charset := range []string{"latin1", "utf8mb3", "gbk"} { // the default first
		s := e.mustOpen(t, e.source("root", name, "charset="+charset))
		if _, err := s.CompareAndSwap(context.Background(), "k", 0, nil); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: an existing key: %v", charset, err)
		}
		if list, err := s.List(context.Background(), "k"); err != nil || len(list) != 1 {
			t.Errorf("%s: lists %v, %v", charset, list, err)
		}
	}
}

func TestAMySQLSettingThatStopsTheStoreIsNamed(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	for _, setting := range []string{"max_join_size=1", "character_set_results=ucs2", "character_set_results=swe7"} {
		word, _, _ := strings.Cut(setting, "=")
		_, err := e.open(e.source("root", name, setting))
		expect(t, setting, err, store.ErrRefused, word)
		if strings.Contains(err.Error(), "dialect") {
			t.Error(err)
		}
	}
	e.raw(t, "", "SET GLOBAL max_join_size = 1")
	put(t, e.mustOpen(t, e.source("root", name, "sql_big_selects=1")), "k", 0, "v")
	e.raw(t, "", "SET GLOBAL max_join_size = DEFAULT")
	for _, charset := range []string{"NULL", "latin1", "binary"} {
		if _, err := e.mustOpen(t, e.source("root", name, "character_set_results="+charset)).Get(context.Background(), "k"); err != nil {
			t.Errorf("%s: %v", charset, err)
		}
	}
}

// A copy made by CREATE TABLE ... AS SELECT has no primary key, so two writers could both insert a key.
func TestATableOfMySQLWithoutItsPrimaryKeyIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	put(t, s, "k", 0, "v")
	e.raw(t, name, "CREATE TABLE copy AS SELECT * FROM firn_registers", "RENAME TABLE firn_registers TO lost, copy TO firn_registers")
	_, err := s.CompareAndSwap(context.Background(), "new", 0, nil)
	expect(t, "a store that was open", err, store.ErrRefused, "ADD PRIMARY KEY (k)")
	_, err = e.open(e.source("root", name, ""))
	expect(t, "a store opened later", err, store.ErrRefused, "ADD PRIMARY KEY (k)")
	e.raw(t, name, "ALTER TABLE firn_registers ADD PRIMARY KEY (k)")
	put(t, s, "new", 0, "v")
}

// MySQL requires the partitioning column in the primary key, which then differs between two writers of
// one key.
func TestAKeyInsertedTwiceIsConfirmedAtMostOnce(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	e.raw(t, name, "ALTER TABLE firn_registers ADD at DATETIME(6) NOT NULL DEFAULT NOW(6), DROP PRIMARY KEY, ADD PRIMARY KEY (k, at)",
		"ALTER TABLE firn_registers PARTITION BY RANGE COLUMNS (at) (PARTITION p VALUES LESS THAN (MAXVALUE))")
	revision := put(t, s, "k", 0, "first")
	put(t, s, "k", revision, "again")
	_, err := s.CompareAndSwap(context.Background(), "k", 0, []byte("second"))
	expect(t, "the second writer", err, store.ErrUnavailable, "applied and not confirmed", "two rows")
	_, err = s.Get(context.Background(), "k")
	expect(t, "a reader", err, store.ErrRefused, "two rows")

	few := e.mustOpen(t, e.source("root", name, "sql_select_limit=1"))
	_, err = few.Get(context.Background(), "k")
	expect(t, "a reader that is shown one row", err, store.ErrRefused, "two rows")
	put(t, few, "other", 0, "first")
	_, err = few.CompareAndSwap(context.Background(), "other", 0, []byte("second"))
	expect(t, "a second writer that is shown one row", err, store.ErrUnavailable, "applied and not confirmed", "two rows")
}

// An engine may report an inserted row to each writer and discard it.
func TestAKeyThatIsNotKeptIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	e.raw(t, name, "INSTALL SONAME 'ha_blackhole'", "ALTER TABLE firn_registers ENGINE=BLACKHOLE")
	_, err := s.CompareAndSwap(context.Background(), "k", 0, nil)
	expect(t, "a discarded row", err, store.ErrUnavailable, "applied and not confirmed", "there once")
}

// The databases also have bytea_output=escape, a setting for old clients.
func TestAPostgresMayHaveAnyEncoding(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	for i, encoding := range []string{"UTF8", "LATIN1", "EUC_JP", "SQL_ASCII"} {
		name := fmt.Sprint("shop", i)
		e.raw(t, "", "CREATE DATABASE "+name+" ENCODING '"+encoding+"' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
			"ALTER DATABASE "+name+" SET bytea_output = 'escape'")
		s := e.mustOpen(t, e.source("postgres", name, "default_query_exec_mode=exec"))
		put(t, s, "firn/pool", 0, "\x00\xff")
		if got, err := s.Get(context.Background(), "firn/pool"); err != nil || string(got.Value) != "\x00\xff" {
			t.Errorf("%s: %q, %v", encoding, got.Value, err)
		}
		if list, err := s.List(context.Background(), "firn/"); err != nil || len(list) != 1 {
			t.Errorf("%s: %v, %v", encoding, list, err)
		}
	}
}

func TestAPostgresMayReadBackslashesAsEscapes(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	const off = "standard_conforming_strings=off"
	for schema, path := range map[string]string{"sales": "sales", `"o'b\ri""en"`: "%22o%27b%5Cri%22%22en%22"} {
		e.raw(t, name, "CREATE SCHEMA "+schema)
		s := e.mustOpen(t, e.source(e.admin(), name, off+"&search_path="+path))
		revision := put(t, s, "k", 0, "v")
		put(t, s, "k", revision, "again")
		e.raw(t, name, "DROP SCHEMA "+schema+" CASCADE")
	}
	s := e.mustOpen(t, e.source(e.admin(), name, off))
	finds(t, s, store.Good, "none connected")
	e.raw(t, "", "ALTER SYSTEM SET synchronous_standby_names = 'ANY 2 (a, b)'", "SELECT pg_reload_conf()")
	finds(t, s, store.Bad, "none connected, and writes wait for 2")
}

// A server that is not strict replaces a number that is too large by the largest one that fits the
// column: all revisions would be equal, and each writer would find its own.
func TestATableOfMySQLThatCutsRevisionsIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--sql-mode=")
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	revision := put(t, s, "k", 0, "v")
	e.raw(t, name, "ALTER TABLE firn_registers MODIFY rev INT NOT NULL")
	_, err := s.CompareAndSwap(context.Background(), "k", revision, []byte("w"))
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("a write over the revision before: %v", err)
	}
	_, err = s.Get(context.Background(), "k")
	expect(t, "a read", err, store.ErrRefused, "rev", "BIGINT")
	_, err = s.List(context.Background(), "")
	expect(t, "a listing", err, store.ErrRefused, "rev", "BIGINT")
	_, err = e.open(e.source("root", name, ""))
	expect(t, "a store opened later", err, store.ErrRefused, "rev", "BIGINT")
	for _, kind := range []string{"BIGINT UNSIGNED", "BIGINT(20)"} {
		e.raw(t, name, "ALTER TABLE firn_registers MODIFY rev "+kind+" NOT NULL", "DELETE FROM firn_registers")
		put(t, s, "k", put(t, s, "k", 0, "v"), "w")
		if _, err := s.Get(context.Background(), "k"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A table that lost its primary key, or that another table inherits from, may get an older copy of a
// row. A reader of that copy would continue counting from there.
func TestADuplicateKeyIsRefused(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "shop")
		s := e.mustOpen(t, e.source(e.admin(), name, ""))
		put(t, s, "j", 0, "v")
		put(t, s, "k", 0, "v")
		if e.driver == "mysql" {
			e.raw(t, name, "ALTER TABLE firn_registers DROP PRIMARY KEY", "INSERT INTO firn_registers SELECT k, v, rev - 2 FROM firn_registers WHERE k = 'k'")
		} else {
			e.raw(t, name, "CREATE TABLE older () INHERITS (firn_registers)", "INSERT INTO older SELECT k, v, rev - 2 FROM firn_registers WHERE k = 'k'")
		}
		_, err := s.Get(context.Background(), "k")
		expect(t, "a read", err, store.ErrRefused, `"k"`, "two rows")
		_, err = s.List(context.Background(), "")
		expect(t, "a listing", err, store.ErrRefused, `"k"`, "two rows")
		if _, err := s.Get(context.Background(), "j"); err != nil {
			t.Errorf("another key: %v", err)
		}
	})
}

// As in docs/sequences.md. A process that knows the record writes over it without a read.
func TestProcessesSeeARecordRaisedByHand(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		ctx := context.Background()
		name := e.fresh(t, "shop")
		s := e.mustOpen(t, e.source(e.admin(), name, ""))
		all, err := sequence.New(sequence.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		txn, err := all.Namespace("txn")
		if err != nil {
			t.Fatal(err)
		}
		segments, err := segment.New(segment.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		orders, err := segments.Namespace("orders")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := txn.Next(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := orders.Take(ctx, 1); err != nil {
			t.Fatal(err)
		}
		e.raw(t, name, `UPDATE firn_registers SET v = '{"last":"70000"}', rev = rev + 1 WHERE k = 'firn/counter:txn'`,
			`UPDATE firn_registers SET v = '{"next":"70000","stride":1}', rev = rev + 1 WHERE k = 'firn/counter:orders'`)
		if id, err := txn.Next(ctx); err != nil || id != 70_001 {
			t.Errorf("a sequence raised to 70000 continues at %d, %v", id, err)
		}
		if err := segments.Close(ctx); err != nil { // it must not return its range
			t.Fatal(err)
		}
		if c, err := segment.ReadCounter(ctx, s, "orders"); err != nil || c.Next != 70_000 {
			t.Errorf("a counter raised to 70000 is at %d, %v", c.Next, err)
		}
	})
}
