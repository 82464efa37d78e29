package storeurl

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A database is a server that holds databases.
type database struct {
	name   string // the URL's scheme
	server *servers.Server
	driver string
	admin  string // its account, in URL form
	key    string // a placeholder
}

func (d database) url(login, name string) string {
	return d.name + "://" + login + "@" + d.server.Addr() + "/" + name
}

// raw runs a statement as an operator.
func (d database) raw(t *testing.T, name, statement string, args ...any) {
	t.Helper()
	source := d.url(d.admin, name)
	if d.driver == "mysql" {
		source = "root@tcp(" + d.server.Addr() + ")/" + name
	}
	db, err := sql.Open(d.driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func mariadb(t *testing.T, args ...string) database {
	return database{"mysql", servers.MariaDB(t, args...), "mysql", "root:", "?"}
}

func postgres(t *testing.T, args ...string) database {
	return database{"postgres", servers.Postgres(t, args...), "pgx", "postgres:", "$1"}
}

// both runs a test on MariaDB and on PostgreSQL.
func both(t *testing.T, test func(t *testing.T, d database)) {
	t.Parallel()
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		d := mariadb(t)
		d.raw(t, "", "CREATE DATABASE mysql_like")
		test(t, d)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres(t))
	})
}

// fresh creates a database and returns its name.
func (d database) fresh(t *testing.T, name string) string {
	t.Helper()
	d.raw(t, "", "CREATE DATABASE "+name)
	return name
}

func TestSQLConformance(t *testing.T) {
	both(t, func(t *testing.T, d database) {
		made, names := 0, map[store.Store]string{}
		another := func(t *testing.T, name string) store.Store {
			s, err := Open(context.Background(), d.url(d.admin, name))
			if err != nil {
				t.Fatal(err)
			}
			names[s] = name
			return s
		}
		storetest.Run(t, storetest.Factory{
			Open: func(t *testing.T) store.Store {
				made++
				return another(t, d.fresh(t, fmt.Sprint("test", made)))
			},
			Another: func(t *testing.T, s store.Store) store.Store { return another(t, names[s]) },
			Delete: func(t *testing.T, s store.Store, key string) {
				d.raw(t, names[s], "DELETE FROM "+sqlstore.Table+" WHERE k = "+d.key, key)
			},
			Restart: func(*testing.T, store.Store) {
				d.server.Kill()
				d.server.Restart()
			},
			Pause: func(*testing.T, store.Store) func() {
				d.server.Pause()
				return d.server.Resume
			},
		})
	})
}

func TestAnEmptyDatabaseCanBeOpenedConcurrently(t *testing.T) {
	both(t, func(t *testing.T, d database) {
		for round := range 5 {
			name := d.fresh(t, fmt.Sprint("empty", round))
			var group sync.WaitGroup
			for i := range 12 {
				group.Go(func() {
					s, err := Open(context.Background(), d.url(d.admin, name))
					if err != nil {
						t.Errorf("open: %v", err)
						return
					}
					if _, err := s.CompareAndSwap(context.Background(), fmt.Sprint("k", i), 0, nil); err != nil {
						t.Errorf("write: %v", err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
	})
}

// A table that is renamed in two steps, or restored, is missing for a moment. A new empty table would
// make the second step fail, and processes that do not know the old values would restart counters.
func TestARunningStoreDoesNotRecreateAMissingTable(t *testing.T) {
	both(t, func(t *testing.T, d database) {
		ctx := context.Background()
		name := d.fresh(t, "away")
		url := d.url(d.admin, name)
		s := opened(t, url)
		written, err := s.CompareAndSwap(ctx, "k", 0, []byte("v"))
		if err != nil {
			t.Fatal(err)
		}
		d.raw(t, name, "ALTER TABLE "+sqlstore.Table+" RENAME TO away")
		_, err = s.Get(ctx, "k")
		expect(t, "a read", err, store.ErrUnavailable, "is gone")
		_, err = s.List(ctx, "")
		expect(t, "a listing", err, store.ErrUnavailable, "is gone")
		for _, old := range []store.Revision{0, written.Revision} {
			_, err = s.CompareAndSwap(ctx, "k", old, nil)
			expect(t, "a write", err, store.ErrUnavailable, "is gone")
		}
		d.raw(t, name, "ALTER TABLE away RENAME TO "+sqlstore.Table)
		if written, err = s.CompareAndSwap(ctx, "k", written.Revision, []byte("w")); err != nil {
			t.Errorf("once it is back: %v", err)
		}

		d.raw(t, name, "DROP TABLE "+sqlstore.Table)
		opened(t, url)
		if _, err := s.CompareAndSwap(ctx, "k", written.Revision, nil); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a write over a revision of the dropped table: %v", err)
		}
		if _, err := s.CompareAndSwap(ctx, "k", 0, nil); err != nil {
			t.Errorf("a first write to the new table: %v", err)
		}
	})
}

// expect checks that an error is of a kind, and contains all words and no password.
func expect(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
	if strings.Contains(err.Error(), "geheim") {
		t.Errorf("%s: %q contains the password", what, err)
	}
}

// try opens a store and writes to it.
func try(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := Open(ctx, url)
	if err != nil {
		return err
	}
	_, err = s.CompareAndSwap(ctx, "k", 0, []byte("v"))
	return errors.Join(err, s.Close())
}

func TestMySQLErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	d := mariadb(t)
	d.fresh(t, "shop")
	d.fresh(t, "made")
	for _, statement := range []string{
		"CREATE USER firn@'%' IDENTIFIED BY 'geheim'", "GRANT SELECT, INSERT, UPDATE ON shop.* TO firn@'%'", "GRANT SELECT, INSERT, UPDATE ON made.* TO firn@'%'",
		"CREATE USER reader@'%' IDENTIFIED BY 'geheim'", "GRANT SELECT ON made.* TO reader@'%'",
	} {
		d.raw(t, "made", statement)
	}
	d.raw(t, "made", sqlstore.MySQL.Schema())
	if err := try(d.url("firn:geheim", "made")); err != nil {
		t.Errorf("a table created by another user: %v", err)
	}
	expect(t, "no right to create the table", try(d.url("firn:geheim", "shop")), store.ErrRefused, "run as one that may:\nCREATE TABLE", " ENGINE=InnoDB;\nGRANT SELECT, INSERT, UPDATE ON `shop`.firn_registers TO 'firn'@'%';")
	expect(t, "a reader", try(d.url("reader:geheim", "made")), store.ErrRefused, "SELECT, INSERT and UPDATE")
	expect(t, "a wrong password", try(d.url("firn:geheimer", "made")), store.ErrRefused, "check user, password")
	expect(t, "no such database", try(d.url("root:", "nothing")), store.ErrRefused, "no such database")
	expect(t, "no database", try(d.url("root:", "")), store.ErrRefused, "names no database")
	expect(t, "two hosts", try("mysql://u:geheim@a,b/c"), store.ErrRefused, "one host")
	expect(t, "no server", try("mysql://u:geheim@"+servers.Nowhere(t)+"/c"), store.ErrUnavailable, "refused")
	expect(t, "TLS to a server without TLS", try(d.url("root:", "made")+"?tls=true"), store.ErrUnavailable, "TLS")
	d.raw(t, "made", "CREATE DATABASE foreigner")
	d.raw(t, "foreigner", "CREATE TABLE "+sqlstore.Table+" (id INT, name TEXT)")
	expect(t, "a foreign table", try(d.url("root:", "foreigner")), store.ErrRefused, "not one of Firn's")
	d.raw(t, "", "SET GLOBAL read_only = 1")
	expect(t, "a replica", try(d.url("firn:geheim", "made")), store.ErrRefused, "name the primary")
}

func TestPostgresErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.fresh(t, "shop")
	d.fresh(t, "made")
	d.raw(t, "made", sqlstore.Postgres.Schema())
	for _, statement := range []string{
		"CREATE USER firn PASSWORD 'geheim'", "GRANT SELECT, INSERT, UPDATE ON firn_registers TO firn",
		"CREATE USER reader PASSWORD 'geheim'", "GRANT SELECT ON firn_registers TO reader",
	} {
		d.raw(t, "made", statement)
	}
	if err := try(d.url("firn:geheim", "made")); err != nil {
		t.Errorf("a table created by another user: %v", err)
	}
	expect(t, "no right to create the table", try(d.url("firn:geheim", "shop")), store.ErrRefused, "run as one that may:\nCREATE TABLE", " NOT NULL);\nGRANT SELECT, INSERT, UPDATE ON public.firn_registers TO firn;")
	expect(t, "a reader", try(d.url("reader:geheim", "made")), store.ErrRefused, "SELECT, INSERT and UPDATE")
	expect(t, "no such user", try(d.url("unknown:geheim", "made")), store.ErrRefused, "check user, password")
	expect(t, "no such database", try(d.url("postgres:", "nothing")), store.ErrRefused, "no such database")
	expect(t, "no server", try("postgres://u:geheim@"+servers.Nowhere(t)+"/c"), store.ErrUnavailable, "refused")
	expect(t, "TLS to a server without TLS", try(d.url("postgres:", "made")+"?sslmode=require"), store.ErrUnavailable, "TLS")
	expect(t, "another database for each user", try("postgres://u:geheim@"+d.server.Addr()+"/"), store.ErrRefused, "it names no database: write")
	expect(t, "another store for each environment", try("postgres://?user=u"), store.ErrRefused, "it names no host and no database")
	expect(t, "an invalid URL", try("postgres://u:ge heim%zz@h/c"), store.ErrRefused, "not a URL that PostgreSQL accepts")
	expect(t, "a replica", try(d.url("postgres:", "made")+"?default_transaction_read_only=on"), store.ErrRefused, "name the primary")
	d.fresh(t, "foreigner")
	d.raw(t, "foreigner", "CREATE TABLE "+sqlstore.Table+" (id INT, name TEXT)")
	expect(t, "a foreign table", try(d.url("postgres:", "foreigner")), store.ErrRefused, "not one of Firn's")
}

// A canceled wait for a standby ends in success and a warning.
func TestAPostgresWriteThatNoStandbyHasIsUnconfirmed(t *testing.T) {
	t.Parallel()
	d := postgres(t, "-c", "synchronous_standby_names=*", "-c", "synchronous_commit=local")
	ctx := context.Background()
	s, err := Open(ctx, d.url(d.admin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answer := make(chan error, 1)
	go func() {
		_, err := s.CompareAndSwap(ctx, "k", 0, []byte("unconfirmed"))
		answer <- err
	}()
	for waiting := true; waiting; {
		select {
		case err := <-answer:
			if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || !strings.Contains(err.Error(), "canceling wait") {
				t.Errorf("canceled: %v", err)
			}
			waiting = false
		default:
			d.raw(t, "postgres", "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		}
	}
	got, err := s.Get(ctx, "k")
	if err != nil || string(got.Value) != "unconfirmed" {
		t.Errorf("the write was not applied, so this proves nothing: %q, %v", got.Value, err)
	}
}

// A server that must be vacuumed warns of that with each write, long before it stops. The warning does
// not concern the write.
func TestAPostgresThatMustBeVacuumedConfirmsWrites(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.raw(t, "postgres", "CREATE TABLE busy (n INT)")
	d.server.WearOut()
	ctx := context.Background()
	db, err := sql.Open(d.driver, d.url(d.admin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	busy, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Rollback()
	if _, err := busy.Exec("LOCK TABLE busy IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	warned := ""
	cfg, err := pgx.ParseConfig(d.url(d.admin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { warned = n.File }
	bare := stdlib.OpenDB(*cfg)
	defer bare.Close()
	if _, err := bare.Exec("CREATE TABLE writes (n INT)"); err != nil || warned != "varsup.c" {
		t.Fatalf("the server's warning is from %q, %v: this proves nothing", warned, err)
	}
	s, err := Open(ctx, d.url(d.admin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CompareAndSwap(ctx, "k", 0, []byte("v")); err != nil {
		t.Error(err)
	}
}

func TestSQLExamine(t *testing.T) {
	both(t, func(t *testing.T, d database) {
		ctx := context.Background()
		name := d.fresh(t, "examined")
		s, err := Open(ctx, d.url(d.admin, name))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		examine := func() map[string]store.Finding {
			found, err := s.Traits().Examine(ctx)
			if err != nil {
				t.Fatal(err)
			}
			bySubject := map[string]store.Finding{}
			for _, f := range found {
				bySubject[f.Subject] = f
			}
			return bySubject
		}
		for subject, f := range examine() {
			if f.Verdict != store.Good || f.Subject != subject {
				t.Errorf("a server with default settings: %v", f)
			}
		}
		if d.driver == "mysql" {
			d.raw(t, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
		} else {
			d.raw(t, "", "ALTER SYSTEM SET full_page_writes = off")
			d.raw(t, "", "SELECT pg_reload_conf()")
			for range 100 { // the server applies the setting with a delay
				if examine()["durability"].Verdict != store.Good {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		if f := examine()["durability"]; f.Verdict != store.Bad || f.Advice == "" {
			t.Errorf("a server that does not sync to its disk: %v", f)
		}
		if len(examine()) != 4 {
			t.Errorf("%v", examine())
		}
		now, err := s.Traits().Clock.Now(ctx)
		if d := time.Since(now).Abs(); err != nil || d > time.Second {
			t.Errorf("its clock is %v off, %v", d, err)
		}
	})
}

// opened opens a store until the test ends.
func opened(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := Open(context.Background(), url)
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

// The driver would send them to the server.
func TestSettingsOfLibpqAloneAreAccepted(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	pooler := servers.PgBouncer(t, d.server, "transaction")
	d.fresh(t, "shop")
	for _, addr := range []string{d.server.Addr(), pooler.Addr()} {
		url := "postgres://postgres@" + addr + "/shop?sslmode=disable"
		for _, setting := range []string{"", "gssencmode=disable", "keepalives=1", "keepalives_idle=30", "load_balance_hosts=random", "fallback_application_name=shop", "sslcompression=0"} {
			if err := try(url + "&" + setting); err != nil && !errors.Is(err, store.ErrConflict) { // the key is there
				t.Errorf("%s, %s: %v", addr, setting, err)
			}
		}
		expect(t, "encryption that is not there", try(url+"&gssencmode=require"), store.ErrRefused, "gssencmode")
	}
	expect(t, "a path of the pooler", try("postgres://postgres@"+pooler.Addr()+"/shop?sslmode=disable&search_path=public"), store.ErrRefused, "ALTER ROLE firn SET search_path")
}

func TestPostgresUsesTheHostThatTakesWrites(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	name := d.fresh(t, "shop")
	put(t, opened(t, d.url(d.admin, name)), "k", 0, "v")
	standby := servers.PostgresStandby(t, d.server)
	hosts := standby.Addr() + "," + d.server.Addr()
	put(t, opened(t, "postgres://postgres:@"+hosts+"/"+name), "several", 0, "v")
	d.server.Kill()
	if _, err := Open(context.Background(), "postgres://postgres:@"+hosts+"/"+name); !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) {
		t.Errorf("while no host takes writes: %v", err)
	}
}

// The machine of the first host is gone, and nothing answers in its place. A look has less time than the
// driver would wait for that host.
func TestAHungPostgresHostDoesNotHideTheNext(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	name := d.fresh(t, "shop")
	proxy := servers.NewProxy(t, d.server.Addr(), nil)
	s := opened(t, "postgres://postgres:@"+proxy.Addr()+","+d.server.Addr()+"/"+name)
	put(t, s, "k", 0, "v")
	proxy.Lead(servers.Silent(t))
	for call := range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := s.Get(ctx, "k")
		if cancel(); err != nil && call > 1 { // after one on the connection that was cut, and one to the host
			t.Errorf("call %d: %v", call, err)
		}
	}
}

// A server may begin sessions in another charset, in which the driver's quoted text has a different
// meaning.
func TestAMySQLServerMayHaveAnotherCharset(t *testing.T) {
	t.Parallel()
	d := mariadb(t, "--character-set-server=gbk", "--skip-character-set-client-handshake", "--init-connect=SET collation_connection=utf8mb3_unicode_ci")
	name := d.fresh(t, "shop")
	d.raw(t, "", "CREATE USER firn") // init_connect does not apply to administrators
	d.raw(t, "", "GRANT ALL ON "+name+".* TO firn")
	s := opened(t, d.url("firn:", name))
	const value = "{\"host\": \"工\\\"'\"}"
	put(t, s, "firn/k", 0, value)
	if got, err := s.Get(context.Background(), "firn/k"); err != nil || string(got.Value) != value {
		t.Errorf("%q, %v", got.Value, err)
	}
	if list, err := s.List(context.Background(), "firn/"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// Accounts with the right to skip init_connect would have another store.
func TestAMySQLServerMayNotLeadAURLToAnotherDatabase(t *testing.T) {
	t.Parallel()
	d := mariadb(t)
	name, other := d.fresh(t, "shop"), d.fresh(t, "other")
	d.raw(t, "", "CREATE USER firn")
	d.raw(t, "", "GRANT ALL ON *.* TO firn")
	d.raw(t, "", "REVOKE SUPER, CONNECTION ADMIN ON *.* FROM firn")
	opened(t, d.url("firn:", name))
	d.raw(t, "", "SET GLOBAL init_connect = 'USE "+other+"'")
	_, err := Open(t.Context(), d.url("firn:", name))
	expect(t, "another", err, store.ErrRefused, "names database "+name, `"`+other+`"`, "init_connect")
	opened(t, d.url(d.admin, name))
}

// A connection that ends under the question for the database is an outage, as at any other statement.
func TestAConnectionLostWhileTheDatabaseIsAskedForIsAnOutage(t *testing.T) {
	t.Parallel()
	d := mariadb(t)
	url := d.url(d.admin, d.fresh(t, "shop"))
	proxy := servers.NewProxy(t, d.server.Addr(), func(server io.Writer, client io.Reader) {
		for buf := make([]byte, 1<<16); ; {
			n, err := client.Read(buf)
			if err != nil || bytes.Contains(buf[:n], []byte("COALESCE(DATABASE()")) {
				return
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	_, err := Open(t.Context(), strings.Replace(url, d.server.Addr(), proxy.Addr(), 1))
	expect(t, "lost", err, store.ErrUnavailable, "ask for the database")
}

// Each connection that a network has silently forgotten costs a holder one look, and newcomers wait
// for few of these.
func TestAHolderIsHeardAfterFewLooksWhenAllConnectionsFallSilent(t *testing.T) {
	both(t, func(t *testing.T, d database) {
		url := d.url(d.admin, d.fresh(t, "silent"))
		proxy := servers.NewProxy(t, d.server.Addr(), nil)
		storetest.FallSilent(t, opened(t, strings.Replace(url, d.server.Addr(), proxy.Addr(), 1)), proxy.Silence)
	})
}

// Without autocommit, as a server's setting, a second reading would show the first one's snapshot: a counter
// that moves meanwhile would look unmoved.
func TestEachReadingOfAForeignDatabaseIsNew(t *testing.T) {
	t.Parallel()
	d := mariadb(t)
	name := d.fresh(t, "foreigner")
	d.raw(t, name, "CREATE TABLE counters (n INT)")
	d.raw(t, name, "INSERT INTO counters VALUES (1)")
	d.raw(t, "", "SET GLOBAL autocommit = 0")
	db, err := OpenMySQL(d.url(d.admin, name))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for want := 1; want <= 2; want++ {
		var n int
		if err := db.QueryRow("SELECT n FROM counters").Scan(&n); err != nil || n != want {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
		d.raw(t, name+"?autocommit=1", "UPDATE counters SET n = 2")
	}
}

// Somebody leaves a transaction open that has changed a row. Writes that wait for it are given up here, and their
// connections must not stay: they would use up those of the server.
func TestConnectionsThatWaitForARowDoNotStay(t *testing.T) {
	t.Parallel()
	d := mariadb(t)
	name := d.fresh(t, "locked")
	s := opened(t, d.url(d.admin, name))
	written, err := s.CompareAndSwap(t.Context(), "k", 0, []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open(d.driver, "root@tcp("+d.server.Addr()+")/"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stranger, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Exec("UPDATE " + sqlstore.Table + " SET v = 'x'"); err != nil {
		t.Fatal(err)
	}
	var writes sync.WaitGroup
	for range 8 {
		writes.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.CompareAndSwap(ctx, "k", written.Revision, []byte("w")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a write that waits: %v", err)
			}
		})
	}
	writes.Wait()
	waiting := func() (n int) {
		if err := db.QueryRow("SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%" + sqlstore.Table + "%' AND info NOT LIKE '%processlist%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if waiting() == 0 {
		t.Error("no statement waits in the server")
	}
	for deadline := time.Now().Add(30 * time.Second); waiting() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d statements still wait in the server", waiting())
		}
	}
	if err := stranger.Rollback(); err != nil {
		t.Error(err)
	}
}
