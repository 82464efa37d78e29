package sql

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// account creates an account that may use tables in database, but not create them.
func (e engine) account(t *testing.T, name, database string) {
	t.Helper()
	if e.driver == "mysql" {
		e.raw(t, database, "CREATE USER "+name+"@'%' IDENTIFIED BY '"+password+"'",
			"GRANT SELECT, INSERT, UPDATE ON "+database+".* TO "+name+"@'%'")
		return
	}
	e.raw(t, database, "CREATE USER "+name+" PASSWORD '"+password+"'",
		"ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE ON TABLES TO "+name)
}

func TestALoginWithoutAccessIsRefused(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "shop")
		e.account(t, "firn", name)
		if e.driver == "pgx" { // the test server trusts every client by default
			rules := "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
			if err := os.WriteFile(e.Path("data/pg_hba.conf"), []byte(rules), 0o644); err != nil {
				t.Fatal(err)
			}
			e.raw(t, "", "SELECT pg_reload_conf()")
		}
		refused := func(what, source string, words ...string) {
			t.Helper()
			_, err := e.open(source)
			expect(t, what, err, store.ErrRefused, words...)
		}
		until(t, "the rules to be read", func() bool {
			_, err := e.open(e.source("firn:"+password+"er", name, ""))
			return err != nil && !strings.Contains(err.Error(), "CREATE TABLE")
		})
		refused("a wrong password", e.source("firn:"+password+"er", name, ""), "password")
		refused("no such account", e.source("unknown:"+password, name, ""), "check user, password")
		refused("no such database", e.source(e.admin(), "nothing", ""), "no such database", "nothing")
		refused("an account that may not create the table", e.source("firn:"+password, name, ""), strings.TrimPrefix(e.dialect.Schema(), "CREATE TABLE IF NOT EXISTS "))
		e.raw(t, name, e.dialect.Schema())
		if err := e.try(e.source("firn:"+password, name, "")); err != nil {
			t.Errorf("with a table created by another account: %v", err)
		}
	})
}

func TestAForeignTableIsRefused(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "foreign_one")
		e.raw(t, name, "CREATE TABLE "+sqlstore.Table+" (id INT, name TEXT)")
		_, err := e.open(e.source(e.admin(), name, ""))
		expect(t, "other columns", err, store.ErrRefused, sqlstore.Table, "not one of Firn's")
	})
}

// A replica shows what was true before. A holder that reads its slot there would not notice that the primary
// has lost it.
func TestAReplicaIsNeitherReadNorWritten(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "shop")
		e.account(t, "firn", name)
		e.raw(t, name, e.dialect.Schema())
		source := e.source("firn:"+password, name, "")
		revision := put(t, e.mustOpen(t, source), "k", 0, "v")
		if e.driver == "mysql" {
			e.raw(t, "", "SET GLOBAL read_only = 1")
		} else {
			e.Kill()
			if err := os.WriteFile(e.Path("data/standby.signal"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			e.Restart()
		}
		s := e.mustOpen(t, source)
		notRead(t, s)
		for _, old := range []store.Revision{0, revision} {
			_, err := s.CompareAndSwap(context.Background(), "k", old, nil)
			expect(t, "a replica", err, store.ErrRefused, "name the primary")
		}
	})
}

// notRead checks that a server that takes no writes is not read either.
func notRead(t *testing.T, s store.Store) {
	t.Helper()
	for _, key := range []string{"k", "unknown"} {
		_, err := s.Get(context.Background(), key)
		expect(t, "reading "+key, err, store.ErrRefused, "name the primary")
	}
	_, err := s.List(context.Background(), "")
	expect(t, "listing", err, store.ErrRefused, "name the primary")
}

// A server that lost its place may answer each statement with an error, and keeps its sessions.
func TestASessionThatOnlyReturnsErrorsIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) engine{
		"mariadb":  func(t *testing.T) engine { return mariadb(t) },
		"postgres": func(t *testing.T) engine { return postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			former, next := start(t), start(t)
			proxy := servers.NewProxy(t, former.Addr(), nil)
			for _, e := range []engine{former, next} {
				put(t, e.mustOpen(t, e.source(e.admin(), e.fresh(t, "shop"), "")), "k", 0, e.Addr())
			}
			db := former.connect(t, strings.Replace(former.source(former.admin(), "shop", ""), former.Addr(), proxy.Addr(), 1))
			s, err := sqlstore.Open(context.Background(), db, former.dialect)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.CompareAndSwap(context.Background(), "k", 0, nil); !errors.Is(err, store.ErrConflict) {
				t.Fatalf("a key that exists: %v", err)
			}
			proxy.Choose(func(int) string { return next.Addr() }) // for new connections
			if got, err := s.Get(context.Background(), "k"); err != nil || string(got.Value) != former.Addr() {
				t.Fatalf("%q, %v: a conflict ended a session", got.Value, err)
			}
			former.raw(t, "shop", "ALTER TABLE firn_registers RENAME TO away")
			_, err = s.Get(context.Background(), "k")
			expect(t, "from the former server", err, store.ErrUnavailable, "where the name leads")
			if got, err := s.Get(context.Background(), "k"); err != nil || string(got.Value) != next.Addr() {
				t.Errorf("%q, %v, want it from the server that the name leads to", got.Value, err)
			}
		})
	}
}

// A primary that was replaced may go on answering reads on the connections that it has. A holder must notice in the time
// that newcomers wait.
func TestASessionFollowsAServerThatMoved(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) engine{
		"mariadb":  func(t *testing.T) engine { return mariadb(t) },
		"postgres": func(t *testing.T) engine { return postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			former, next := start(t), start(t)
			proxy := servers.NewProxy(t, former.Addr(), nil)
			for _, e := range []engine{former, next} {
				put(t, e.mustOpen(t, e.source(e.admin(), e.fresh(t, "shop"), "")), "k", 0, e.Addr())
			}
			s := former.mustOpen(t, strings.Replace(former.source(former.admin(), "shop", ""), former.Addr(), proxy.Addr(), 1))
			proxy.Choose(func(int) string { return next.Addr() }) // for new connections
			begun := time.Now()
			until(t, "the next server to answer", func() bool {
				got, err := s.Get(context.Background(), "k")
				return err == nil && string(got.Value) == next.Addr()
			})
			if took := time.Since(begun); took > 7*time.Second { // the grace without the time between two looks, less a call's 2 s
				t.Errorf("the former server was asked for %v", took)
			}
		})
	}
}

// An operator sets read_only on a primary before another server is promoted: later writes to it are
// lost. The server lets administrators write anyway, so the store must refuse.
func TestAReadOnlyMySQLIsNotWrittenEvenAsAnAdministrator(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	s := e.mustOpen(t, e.source("root", name, ""))
	revision := put(t, s, "k", 0, "v")
	e.raw(t, "", "SET GLOBAL read_only = 1")
	for _, s := range []store.Store{s, e.mustOpen(t, e.source("root", name, ""))} {
		for key, old := range map[string]store.Revision{"k": revision, "new": 0} {
			_, err := s.CompareAndSwap(context.Background(), key, old, nil)
			expect(t, "read-only", err, store.ErrRefused, "name the primary")
		}
		notRead(t, s)
	}
	e.raw(t, "", "SET GLOBAL read_only = 0")
	put(t, s, "k", revision, "once it is not")
}

func TestASessionThatMayOnlyReadIsRefused(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "shop")
		e.mustOpen(t, e.source(e.admin(), name, ""))
		setting := "tx_read_only=1"
		if e.driver == "pgx" {
			setting = "default_transaction_read_only=on"
		}
		expect(t, setting, e.try(e.source(e.admin(), name, setting)), store.ErrRefused, "name the primary")
		_, err := e.open(e.source(e.admin(), e.fresh(t, "another"), setting))
		expect(t, setting+" and no table", err, store.ErrRefused, "name the primary")
	})
}

func TestAWriteWaitsForALockedRowAndThenItsOutcomeIsUnknown(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "shop")
		setting := "innodb_lock_wait_timeout=1"
		if e.driver == "pgx" {
			setting = "lock_timeout=300"
		}
		s := e.mustOpen(t, e.source(e.admin(), name, setting))
		revision := put(t, s, "k", 0, "v")
		tx, err := e.connect(t, e.source(e.admin(), name, "")).Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("SELECT v FROM " + sqlstore.Table + " FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(context.Background(), "k", revision, []byte("w"))
		expect(t, "a locked row", err, store.ErrUnavailable)
		if got, err := s.Get(context.Background(), "k"); err != nil || string(got.Value) != "v" {
			t.Errorf("a read during the lock: %q, %v", got.Value, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err = s.CompareAndSwap(ctx, "k", revision, []byte("w"))
		expect(t, "a locked row and a deadline", err, context.DeadlineExceeded)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		// A write with an unknown outcome may still have reached the row.
		got, err := s.Get(context.Background(), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(context.Background(), "k", got.Revision, []byte("x"))
		if err != nil && !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
	})
}

func TestAServerWithoutConnectionsLeftIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, e := range []engine{mariadb(t, "--max-connections=10"), postgres(t, "-c", "max_connections=10", "-c", "superuser_reserved_connections=1")} {
		name := e.fresh(t, "shop")
		e.raw(t, name, e.dialect.Schema())
		e.account(t, "firn", name)
		db := e.connect(t, e.source(e.admin(), name, ""))
		db.SetMaxIdleConns(50)
		var err error
		for i := 0; err == nil && i < 50; i++ { // until no connection is left
			_, err = db.Conn(context.Background())
		}
		expect(t, e.dialect.String(), e.try(e.source("firn:"+password, name, "")), store.ErrUnavailable, "max_connections")
	}
}

// until waits for a condition that only needs time.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
