package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// shown is the dialect with what pgx shows, as in the package comment of sqlstore.
var shown = sqlstore.Postgres.WithSession(func(conn any) sqlstore.Session {
	c := conn.(*stdlib.Conn).Conn().PgConn()
	warning, _ := c.CustomData()["warning"].(string)
	delete(c.CustomData(), "warning")
	return sqlstore.Session{Warning: warning, Idle: c.TxStatus() == 'I'}
})

// warned opens a store that sees the driver's warnings, as the package comment of sqlstore
// recommends for programs that open pgx themselves.
func (e engine) warned(t *testing.T, name, settings string) store.Store {
	t.Helper()
	cfg, err := pgx.ParseConfig(e.source(e.admin(), name, settings))
	if err != nil {
		t.Fatal(err)
	}
	cfg.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" && n.File != "varsup.c" {
			c.CustomData()["warning"] = n.Message
		}
	}
	s, err := sqlstore.Open(context.Background(), stdlib.OpenDB(*cfg), shown)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// cutShort writes until a write waits for a standby, and ends that wait from another session. It returns the revision that
// this write was made over, and its error. PostgreSQL confirms writes without a standby until its checkpointer has read the
// new synchronous_standby_names.
func (e engine) cutShort(t *testing.T, s store.Store, key string, over store.Revision, value, how string) (store.Revision, error) {
	t.Helper()
	db := e.connect(t, e.source(e.admin(), "", ""))
	var err error
	until(t, "a write to wait for a standby", func() bool {
		var written store.Entry
		done := make(chan bool)
		go func() {
			written, err = s.CompareAndSwap(context.Background(), key, over, []byte(value))
			close(done)
		}()
		for {
			select {
			case <-done:
				if err == nil { // it did not wait
					over = written.Revision
				}
				return err != nil
			case <-time.After(10 * time.Millisecond):
				var cut bool
				if err := db.QueryRow("SELECT " + how + "(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&cut); err != nil && !errors.Is(err, sql.ErrNoRows) {
					t.Error(err)
				}
			}
		}
	})
	return over, err
}

// background runs a write and returns its result later.
func background(s store.Store, key string, old store.Revision, value string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.CompareAndSwap(context.Background(), key, old, []byte(value))
		done <- err
	}()
	return done
}

// A wait for a standby that is cut short ends in "UPDATE 1" and a warning, and the standby lacks the
// write: it is applied, but not confirmed.
func TestAPostgresWriteWhoseWaitForAStandbyIsCutShortIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	s := e.warned(t, name, "")
	revision := put(t, s, "k", 0, "before there were standbys")
	e.raw(t, "", "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	until(t, "the setting to be read", func() bool {
		var names string
		return e.connect(t, e.source(e.admin(), name, "")).QueryRow("SHOW synchronous_standby_names").Scan(&names) == nil && names == "*"
	})
	for i, settings := range []string{"", "client_min_messages=error", "synchronous_commit=local", "synchronous_commit=off", "default_query_exec_mode=simple_protocol"} {
		s := e.warned(t, name, settings)
		value := fmt.Sprint("unconfirmed ", i)
		over, err := e.cutShort(t, s, "k", revision, value, "pg_cancel_backend")
		expect(t, settings+": canceled", err, store.ErrUnavailable, "applied and not confirmed", "canceling wait for synchronous replication")
		got, err := s.Get(context.Background(), "k")
		if err != nil || string(got.Value) != value || got.Revision == over {
			t.Fatalf("%s: read back %q, %v: the write was not applied, so this proves nothing", settings, got.Value, err)
		}
		revision = got.Revision
	}
	_, err := e.cutShort(t, s, "ended", 0, "", "pg_terminate_backend")
	expect(t, "an ended session", err, store.ErrUnavailable)

	done := background(s, "k", revision, "settled")
	servers.PostgresStandby(t, e.Server)
	if err := <-done; err != nil {
		t.Errorf("once a standby is connected: %v", err)
	}
	put(t, s, "new", 0, "")
}

// A pooler may hand over a session in which another client has a transaction open. What is written there
// is not committed.
func TestAPostgresWriteInATransactionLeftOpenIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	cfg, err := pgx.ParseConfig(e.source(e.admin(), name, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what    string
		dialect sqlstore.Dialect
		kind    error
	}{{"the driver shows it", shown, store.ErrRefused}, {"the driver does not", sqlstore.Postgres, store.ErrUnavailable}} {
		open := ""
		db := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, open)
			return err
		}))
		s, err := sqlstore.Open(context.Background(), db, test.dialect)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxIdleConns(-1) // each call has a session of its own
		open = "BEGIN"
		_, err = s.CompareAndSwap(context.Background(), test.what, 0, []byte("v"))
		expect(t, test.what, err, test.kind, "transaction was left open")
		open = ""
		put(t, s, test.what, 0, "v")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Without the driver's warnings the outcome is uncertain, so the write is not confirmed.
func TestAPostgresWriteWithStandbysIsUnconfirmedWithoutTheDriversWarnings(t *testing.T) {
	t.Parallel()
	e := postgres(t, "-c", "synchronous_standby_names=*", "-c", "synchronous_commit=local")
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source(e.admin(), name, ""))
	servers.PostgresStandby(t, e.Server)
	_, err := s.CompareAndSwap(context.Background(), "k", 0, nil)
	expect(t, "no warnings", err, store.ErrUnavailable, "WithSession")
	put(t, e.warned(t, name, ""), "with warnings", 0, "")
}

func TestAPostgresNamesItsLife(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	standby := engine{servers.PostgresStandby(t, e.Server), e.dialect, e.driver, e.key}
	e.account(t, "firn", name)
	e.mustOpen(t, e.source(e.admin(), name, "")) // creates the table
	life := func(e engine, key string) string {
		t.Helper()
		s := e.mustOpen(t, e.source("firn:"+password, name, ""))
		got, err := s.CompareAndSwap(context.Background(), key, 0, nil)
		if err != nil || got.Life == "" {
			t.Fatalf("%q, %v", got.Life, err)
		}
		return got.Life
	}
	lives := map[string]string{}
	seen := func(what, life string) {
		t.Helper()
		if before, ok := lives[life]; ok {
			t.Errorf("%s has the life of %s: %q", what, before, life)
		}
		lives[life] = what
	}
	seen("the primary", life(e, "first"))
	until(t, "the standby to follow", func() bool {
		var n int
		err := standby.connect(t, standby.source("postgres", name, "")).QueryRow("SELECT count(*) FROM " + sqlstore.Table).Scan(&n)
		return err == nil && n == 1
	})
	standby.Promote()
	until(t, "the standby to be promoted", func() bool {
		var recovery bool
		err := standby.connect(t, standby.source("postgres", name, "")).QueryRow("SELECT pg_is_in_recovery()").Scan(&recovery)
		return err == nil && !recovery
	})
	seen("the promoted standby", life(standby, "second"))
	e.Kill()
	e.Restart()
	seen("the primary after a restart", life(e, "third"))
}

// A trigger written for DELETE returns OLD. Before an UPDATE that cancels the change, and the server
// still reports "UPDATE 1": each process would be granted what is already taken.
func TestAPostgresWriteThatATriggerChangesIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source(e.admin(), name, ""))
	revision := put(t, s, "k", 0, "v")
	for _, returns := range []string{"OLD", "(NEW.k, NEW.v, OLD.rev)", "(NEW.k, 'else'::bytea, NEW.rev)", "('tenant/' || NEW.k, NEW.v, NEW.rev)"} {
		e.raw(t, name, "CREATE OR REPLACE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN "+returns+"; END $$",
			"CREATE OR REPLACE TRIGGER audit BEFORE INSERT OR UPDATE ON firn_registers FOR EACH ROW EXECUTE FUNCTION audit()")
		got, err := s.Get(context.Background(), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(context.Background(), "k", got.Revision, []byte("w"))
		expect(t, returns, err, store.ErrUnavailable, "not confirmed", "trigger")
		if !strings.Contains(returns, "OLD") { // that is NULL there
			_, err = s.CompareAndSwap(context.Background(), "new/"+returns, 0, []byte("v"))
			expect(t, returns+": a new key", err, store.ErrUnavailable, "not confirmed", "trigger")
		}
	}
	e.raw(t, name, "CREATE OR REPLACE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
		"UPDATE firn_registers SET k = 'k' WHERE k = 'tenant/k'")
	got, err := s.Get(context.Background(), "k")
	if err != nil || got.Revision == revision {
		t.Fatal(got, err)
	}
	put(t, s, "k", got.Revision, "w")
}

// The life of a server is the same for all its sessions, however few digits a session is set to show. It
// has the microsecond of the start, since a clock may show the same second at each boot.
func TestAPostgresNamesItsLifeWhateverDigitsASessionShows(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	var lives []string
	for i, settings := range []string{"default_query_exec_mode=exec", "default_query_exec_mode=exec&extra_float_digits=-15"} {
		got, err := e.mustOpen(t, e.source(e.admin(), name, settings)).CompareAndSwap(context.Background(), fmt.Sprint(i), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		lives = append(lives, got.Life)
	}
	var micros string
	err := e.connect(t, e.source(e.admin(), "", "")).QueryRow("SELECT to_char(pg_postmaster_start_time(), 'US')").Scan(&micros)
	if err != nil || lives[0] != lives[1] || !strings.Contains(lives[0], micros+" ") {
		t.Errorf("one server that started %s µs after a second has lives %q, %v", micros, lives, err)
	}
	// A copy beside it may get its name.
	for _, other := range []string{name, e.fresh(t, "copy")} {
		if other == name {
			e.raw(t, name, "DROP TABLE firn_registers")
		}
		got, err := e.mustOpen(t, e.source(e.admin(), other, "default_query_exec_mode=exec")).CompareAndSwap(context.Background(), "k", 0, nil)
		if err != nil || slices.Contains(lives, got.Life) {
			t.Errorf("another table has the life %q, as others of %q: %v", got.Life, lives, err)
		}
		lives = append(lives, got.Life)
	}
}

// A server waits for a replica only for a limited time, or until the statement is killed, and then
// reports success anyway.
func TestAMySQLWriteThatNoReplicaAcknowledgedIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1", "--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=600000")
	replica := servers.MariaDBReplica(t, e.Server, "--server-id=2")
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	revision := untilConfirmed(t, s, "k", "confirmed") // the replica may just be connecting
	readBack := func(want string) {
		t.Helper()
		got, err := s.Get(context.Background(), "k")
		if err != nil || string(got.Value) != want {
			t.Fatalf("read back %q, %v: the write was not applied, so this proves nothing", got.Value, err)
		}
		revision = got.Revision
	}

	replica.Pause()
	admin := e.connect(t, e.source("root", "", ""))
	for _, value := range []string{"killed", "killed again after FLUSH STATUS, with as many misses as before"} {
		done := background(s, "k", revision, value)
		until(t, "a write to wait for the replica", func() bool {
			var id int64
			err := admin.QueryRow("SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync ACK%' AND info LIKE 'UPDATE%'").Scan(&id)
			if err == nil {
				_, err = admin.Exec("KILL QUERY ?", id)
			}
			return err == nil
		})
		expect(t, "a killed statement", <-done, store.ErrUnavailable, "applied and not confirmed", "replica")
		readBack(value)
		e.raw(t, "", "FLUSH LOCAL STATUS")
	}

	e.raw(t, "", "SET GLOBAL rpl_semi_sync_master_timeout = 200")
	_, err := s.CompareAndSwap(context.Background(), "k", revision, []byte("timed out"))
	expect(t, "after the time-out", err, store.ErrUnavailable, "applied and not confirmed", "replica")
	readBack("timed out")
	_, err = s.CompareAndSwap(context.Background(), "k", revision, []byte("not waited for"))
	expect(t, "once the server no longer waits", err, store.ErrUnavailable, "applied and not confirmed", "replica")
	_, err = e.mustOpen(t, e.source("root", name, "")).CompareAndSwap(context.Background(), "other", 0, nil)
	expect(t, "by a store opened later", err, store.ErrUnavailable, "applied and not confirmed")

	replica.Resume()
	untilConfirmed(t, s, "k", "settled")
	var value string
	db := engine{replica, e.dialect, e.driver, e.key}
	until(t, "the replica to apply what it acknowledged", func() bool {
		err := db.connect(t, db.source("root", name, "")).QueryRow("SELECT v FROM " + sqlstore.Table + " WHERE k = 'k'").Scan(&value)
		return err == nil && value == "settled"
	})
}

// After FLUSH STATUS others may bring the counts to where they were, or beyond.
func TestAMySQLWriteIsNotConfirmedByCountsThatBeganAgain(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1", "--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=600000")
	replica := servers.MariaDBReplica(t, e.Server, "--server-id=2")
	name := e.fresh(t, "shop")
	e.raw(t, name, "CREATE TABLE others (n INT)")
	admin := e.connect(t, e.source("root", name, ""))
	kill := func(waiting string) {
		t.Helper()
		until(t, "a write to wait for the replica", func() bool {
			var id int64
			err := admin.QueryRow("SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync ACK%' AND info LIKE ?", waiting+"%").Scan(&id)
			if err == nil {
				_, err = admin.Exec("KILL QUERY ?", id)
			}
			return err == nil
		})
	}
	// One commit is missed, before Firn's baseline.
	replica.Pause()
	missed := make(chan error, 1)
	go func() {
		_, err := admin.Exec("INSERT INTO others VALUES (0)")
		missed <- err
	}()
	kill("INSERT INTO others")
	<-missed
	replica.Resume()
	s := e.mustOpen(t, e.source("root", name, ""))
	revision := untilConfirmed(t, s, "k", "confirmed")
	e.raw(t, "", "FLUSH STATUS")
	for range 50 {
		e.raw(t, name, "INSERT INTO others VALUES (1)")
	}
	replica.Pause()
	done := background(s, "k", revision, "killed")
	kill("UPDATE")
	expect(t, "after FLUSH STATUS", <-done, store.ErrUnavailable, "applied and not confirmed", "FLUSH STATUS")
}

// Semi-synchronous replication is turned on while a server runs.
func TestAMySQLWriteFollowsTheServersCurrentSettings(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1", "--rpl-semi-sync-master-timeout=1100")
	s := e.mustOpen(t, e.source("root", e.fresh(t, "shop"), ""))
	revision := put(t, s, "k", 0, "without waiting")
	e.raw(t, "", "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	_, err := s.CompareAndSwap(context.Background(), "k", revision, []byte("waits for a replica"))
	expect(t, "without a replica", err, store.ErrUnavailable, "applied and not confirmed", "replica")
	e.raw(t, "", "SET GLOBAL rpl_semi_sync_master_enabled = 0")
	untilConfirmed(t, s, "k", "without waiting again")
}

// A write that is not logged waits for no replica, and reaches no replica.
func TestAMySQLWriteThatTheLogLeavesOutIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := mariadb(t, "--log-bin", "--server-id=1", "--rpl-semi-sync-master-enabled=1", "--binlog-ignore-db=shop")
	servers.MariaDBReplica(t, e.Server, "--server-id=2")
	_, err := e.mustOpen(t, e.source("root", e.fresh(t, "shop"), "")).CompareAndSwap(context.Background(), "k", 0, nil)
	expect(t, "left out", err, store.ErrUnavailable, "applied and not confirmed", "binlog_ignore_db")
	untilConfirmed(t, e.mustOpen(t, e.source("root", e.fresh(t, "other"), "")), "k", "v")
}

// A rule makes the server write to another table, an unlogged table is empty after a crash, and a
// temporary table differs for each session.
func TestAPostgresWriteThatTheTableDoesNotKeepIsUnconfirmed(t *testing.T) {
	t.Parallel()
	e := postgres(t)
	name := e.fresh(t, "shop")
	s := e.warned(t, name, "")
	revision := put(t, s, "k", 0, "one")
	e.raw(t, name, "CREATE TABLE elsewhere (LIKE firn_registers INCLUDING ALL)", "INSERT INTO elsewhere SELECT * FROM firn_registers",
		"CREATE RULE r AS ON UPDATE TO firn_registers DO INSTEAD UPDATE elsewhere SET v = NEW.v, rev = NEW.rev WHERE k = OLD.k RETURNING k, v, rev")
	if _, err := s.CompareAndSwap(context.Background(), "k", revision, []byte("two")); err == nil {
		t.Error("a rule: a write elsewhere is confirmed")
	}
	e.raw(t, name, "DROP RULE r ON firn_registers", "ALTER TABLE firn_registers SET UNLOGGED")
	_, err := s.CompareAndSwap(context.Background(), "k", revision, []byte("two"))
	expect(t, "unlogged", err, store.ErrUnavailable, "not confirmed", "SET LOGGED")
	e.raw(t, name, "ALTER TABLE firn_registers SET LOGGED")
	other := put(t, s, "other", 0, "is confirmed")

	e.raw(t, name, "ALTER TABLE firn_registers RENAME TO behind", "CREATE VIEW firn_registers AS SELECT k, v, rev, tableoid FROM behind",
		"CREATE FUNCTION discard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
		"CREATE TRIGGER discard INSTEAD OF INSERT OR UPDATE ON firn_registers FOR EACH ROW EXECUTE FUNCTION discard()")
	_, err = s.CompareAndSwap(context.Background(), "other", other, []byte("two"))
	expect(t, "a view", err, store.ErrUnavailable, "not confirmed", "view")
	e.raw(t, name, "DROP VIEW firn_registers", "ALTER TABLE behind RENAME TO firn_registers")
	put(t, s, "other", other, "is confirmed again")

	db := e.connect(t, e.source(e.admin(), name, ""))
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TEMPORARY TABLE firn_registers (LIKE firn_registers INCLUDING ALL)"); err != nil {
		t.Fatal(err)
	}
	shared, err := sqlstore.Open(context.Background(), db, sqlstore.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	_, err = shared.CompareAndSwap(context.Background(), "k", 0, nil)
	expect(t, "temporary", err, store.ErrUnavailable, "not confirmed")
}
