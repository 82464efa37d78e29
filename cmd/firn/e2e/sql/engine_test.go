package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// An engine is a database server of a test. Each test creates its own databases.
type engine struct {
	*servers.Server
	dialect sqlstore.Dialect
	driver  string
	key     string // a placeholder
}

func mariadb(t *testing.T, args ...string) engine {
	return engine{servers.MariaDB(t, args...), sqlstore.MySQL, "mysql", "?"}
}

func postgres(t *testing.T, args ...string) engine {
	return engine{servers.Postgres(t, args...), sqlstore.Postgres, "pgx", "$1"}
}

// both runs a test on a server of each kind.
func both(t *testing.T, test func(t *testing.T, e engine)) {
	t.Parallel()
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		test(t, mariadb(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres(t))
	})
}

// source returns the driver's name for a database; user includes the password, if any, as in
// "firn:geheim".
func (e engine) source(user, database, settings string) string {
	if e.driver == "mysql" {
		return user + "@tcp(" + e.Addr() + ")/" + database + "?" + settings
	}
	return "postgres://" + user + "@" + e.Addr() + "/" + database + "?sslmode=disable&" + settings
}

func (e engine) admin() string {
	if e.driver == "mysql" {
		return "root"
	}
	return "postgres"
}

// connect opens a database with the driver alone.
func (e engine) connect(t *testing.T, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(e.driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // its server may have been killed
	return db
}

// raw runs statements as an operator.
func (e engine) raw(t *testing.T, database string, statements ...string) {
	t.Helper()
	db := e.connect(t, e.source(e.admin(), database, ""))
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// fresh creates a database and returns its name.
func (e engine) fresh(t *testing.T, name string) string {
	t.Helper()
	e.raw(t, "", "CREATE DATABASE "+name)
	return name
}

// open opens a store in a database.
func (e engine) open(source string) (store.Store, error) {
	db, err := sql.Open(e.driver, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := sqlstore.Open(ctx, db, e.dialect)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// mustOpen opens a store in a database, closed when the test ends.
func (e engine) mustOpen(t *testing.T, source string) store.Store {
	t.Helper()
	s, err := e.open(source)
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

// try opens a store and writes to it.
func (e engine) try(source string) error {
	s, err := e.open(source)
	if err != nil {
		return err
	}
	_, err = s.CompareAndSwap(context.Background(), fmt.Sprint(time.Now().UnixNano()), 0, []byte("v"))
	return errors.Join(err, s.Close())
}

// put writes and expects the write to be applied.
func put(t *testing.T, s store.Store, key string, old store.Revision, value string) store.Revision {
	t.Helper()
	e, err := s.CompareAndSwap(context.Background(), key, old, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return e.Revision
}

// untilConfirmed writes until a write is confirmed: a replica that was just started or resumed
// acknowledges nothing at first.
func untilConfirmed(t *testing.T, s store.Store, key, value string) (revision store.Revision) {
	t.Helper()
	until(t, "a confirmed write", func() bool {
		e, err := s.Get(context.Background(), key)
		if err == nil || errors.Is(err, store.ErrNotFound) {
			e, err = s.CompareAndSwap(context.Background(), key, e.Revision, []byte(value))
			revision = e.Revision
		}
		return err == nil
	})
	return revision
}

const password = "geheim"

// expect checks that an error is of a kind, refused or with an unknown outcome but not both, and
// contains all words and no password.
func expect(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) || store.Unapplied(err) != errors.Is(kind, store.ErrRefused) {
		t.Errorf("%s: %v, want only %v", what, err, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("%s: %q contains the password", what, err)
	}
}
