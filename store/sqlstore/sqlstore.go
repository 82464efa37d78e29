// Package sqlstore is a [store.Store] over database/sql. The caller opens the database, and so
// picks the driver:
//
//	db, err := sql.Open("pgx", "postgres://firn@10.0.0.5/shop")
//	s, err := sqlstore.Open(ctx, db, sqlstore.Postgres)
//
// Everything is in one table of keys, values and revisions, in the schema or database that the session
// leads to when the store is opened. Each read or write is one statement that commits by itself. On one
// primary that is linearizable at every isolation level from read committed up: a write locks the row and
// looks at it as it is then, or is undone and tried again; a read sees what was acknowledged before its
// call. A session that does not commit by itself, or reads uncommitted data, is refused, also if it
// became so while the store was open.
//
// Do not use it over a database without a lasting disk, or over a proxy that sends reads to replicas, and
// give it a *sql.DB of its own: settings that another user of a connection leaves behind are not all
// noticed. Where no database is running already, package filestore or a Redis needs less.
//
// The db must reach the primary alone, since a replica may be behind; in a Galera cluster, one member, unless
// wsrep_sync_wait is set. What survives, and what begins a new life, is in docs/store-faults.md.
//
// # Replicas
//
// A write is confirmed once the replicas that the primary waits for have it: synchronous_standby_names in
// PostgreSQL, semi-synchronous replication in MySQL and MariaDB. Both may stop waiting and report success
// all the same: such a write is [store.ErrUnavailable], applied and not confirmed. In MySQL that takes
// one more question after each write, if a primary waits for replicas. PostgreSQL tells by a warning,
// which database/sql does not show, and neither does it show that a pooler's session has another client's
// transaction open; so give the dialect a function that does. Without it each write takes one more
// question, and no write to a PostgreSQL that waits for standbys is confirmed. With jackc/pgx:
//
//	cfg, err := pgx.ParseConfig(url)
//	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // PgBouncer keeps no prepared statements in transaction mode
//	cfg.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
//		// varsup.c warns that the database must be vacuumed, of each write for days.
//		if n.SeverityUnlocalized == "WARNING" && n.File != "varsup.c" {
//			c.CustomData()["warning"] = n.Message
//		}
//	}
//	dialect := sqlstore.Postgres.WithSession(func(conn any) sqlstore.Session {
//		c := conn.(*stdlib.Conn).Conn().PgConn()
//		warning, _ := c.CustomData()["warning"].(string)
//		delete(c.CustomData(), "warning")
//		return sqlstore.Session{Warning: warning, Idle: c.TxStatus() == 'I'}
//	})
//	s, err := sqlstore.Open(ctx, stdlib.OpenDB(*cfg), dialect)
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// Table is the name of the table.
const Table = "firn_registers"

// Store is a [store.Store] in a table. Make one with [Open] or [Create]: the zero value and nil are not usable.
type Store struct {
	db      *sql.DB
	dialect Dialect
	lanes   *backend.Lanes
	patient chan struct{}                // full while an attempt to connect may outlive its call; nil if embedded
	idle    int                          // connections; 0 if embedded
	file    atomic.Pointer[sqliteFile]   // [SQLite] only
	mysql   atomic.Pointer[mysqlSession] // the last one vetted; [MySQL] only
}

// Open returns a store in db, which Close closes. Limit its connections before that (SetMaxOpenConns): the
// store then keeps three of them for leases, if there are more.
//
// In a database on another host Open creates the table if it does not exist, and otherwise writes nothing.
// It keeps up to 16 connections idle (SetMaxIdleConns), or as many as there may be: do not give it one of pgx's
// stdlib.OpenDBFromPool, whose pool would have none left for others. Allow at least four: a driver may check an idle
// connection that the network has forgotten for 20 s (pgx), or end no call that a server leaves unanswered (lib/pq, which
// also needs connect_timeout), and with one or two a holder would find its store too late. Connections end after 5 s
// (SetConnMaxLifetime), so that they follow a name that leads elsewhere. In a SQLite file
// only [Create] creates the table, so that a mistyped path is [store.ErrNotFound], not another, empty store.
//
// The error is [store.ErrRefused] if the table of that name is not Firn's, or the session is unfit; a
// later unfit session is refused at its first use.
func Open(ctx context.Context, db *sql.DB, dialect Dialect) (*Store, error) {
	return open(ctx, db, dialect, false)
}

// Create is [Open], and also creates the table in a SQLite file that has none.
func Create(ctx context.Context, db *sql.DB, dialect Dialect) (*Store, error) {
	return open(ctx, db, dialect, true)
}

// mostIdle bounds idle connections if the database does not bound all. A process with many pools needs
// many: connecting may take longer than its looks have.
const mostIdle = 16

func open(ctx context.Context, db *sql.DB, dialect Dialect, makes bool) (*Store, error) {
	if db == nil || dialect.name == "" {
		return nil, fmt.Errorf("sqlstore: %w: a *sql.DB and one of SQLite, MySQL and Postgres are required", store.ErrRefused)
	}
	most := db.Stats().MaxOpenConnections
	s := &Store{db: db, dialect: dialect, lanes: backend.NewLanes(most)}
	if !dialect.embedded {
		s.idle = cmp.Or(most, mostIdle)
		db.SetMaxIdleConns(s.idle)
		db.SetConnMaxLifetime(backend.ConnectionLife)
		s.patient = make(chan struct{}, 1)
	}
	if _, err := call(ctx, s, opOpen, Table, func(ctx context.Context, conn *sql.Conn) ([]store.Entry, error) {
		schema, err := dialect.home(ctx, s, conn)
		if err != nil {
			return nil, err
		}
		s.dialect = dialect.in(schema)
		if dialect.exists != nil && !makes {
			if err := dialect.exists(ctx, conn); err != nil {
				return nil, err
			}
		}
		return s.registers(ctx, conn, s.dialect.probe)
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	return call(ctx, s, "get", key, func(ctx context.Context, conn *sql.Conn) (store.Entry, error) {
		return backend.First(s.registers(ctx, conn, s.dialect.get, key))
	})
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	return backend.Write(key, value, func(e store.Entry) (life string, err error) {
		statement, args := s.dialect.insert, []any{key, e.Value, e.Revision}
		if old != 0 {
			statement, args = s.dialect.update, []any{e.Value, e.Revision, key, old}
		}
		lost := false // a connection was lost, by a driver that may still have sent the write
		life, err = call(ctx, s, "compare-and-swap", key, func(ctx context.Context, conn *sql.Conn) (string, error) {
			life, err := s.dialect.swap(ctx, s, conn, statement, args)
			lost = lost || errors.Is(err, driver.ErrBadConn)
			return life, err
		})
		if lost && store.Unapplied(err) {
			err = fmt.Errorf("%w: a connection was lost under the write; then: %s", store.ErrUnavailable, err.Error())
		}
		return life, err
	})
}

// after returns text that sorts after all keys with a prefix, and before all later ones. For an ASCII
// prefix it is ASCII too: not every database has the last character of Unicode.
func after(prefix string) string {
	if end := len(prefix) - 1; end >= 0 && prefix[end] < '~' {
		return prefix[:end] + string(prefix[end]+1)
	}
	return prefix + "\U0010FFFF"
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if s.dialect.embedded {
		return s.list(ctx, prefix)
	}
	ctx, cancel := backend.Bound(ctx)
	defer cancel()
	end, err := s.lanes.List(ctx)
	if err != nil {
		return nil, s.wrap(ctx, "list", prefix, err)
	}
	defer end() // with the call, also if it is abandoned: drivers that leave it to a silent server would keep the place
	return s.list(ctx, prefix)
}

func (s *Store) list(ctx context.Context, prefix string) ([]store.Entry, error) {
	return call(ctx, s, "list", prefix, func(ctx context.Context, conn *sql.Conn) ([]store.Entry, error) {
		list, err := s.registers(ctx, conn, s.dialect.list, cmp.Or(prefix, " "), after(prefix))                    // the store's own key begins with a tab
		return slices.DeleteFunc(list, func(e store.Entry) bool { return !strings.HasPrefix(e.Key, prefix) }), err // if the collation is laxer
	})
}

// Close closes the database. Connections that the server has already ended are no error.
func (s *Store) Close() error {
	err := s.db.Close()
	if err == nil || errors.Is(err, driver.ErrBadConn) {
		return nil
	}
	if _, kind := s.dialect.classify(err); errors.Is(kind, store.ErrUnavailable) && !s.dialect.embedded {
		return nil
	}
	return s.wrap(context.Background(), "close", Table, err)
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits {
	if s.dialect.embedded {
		return store.Traits{Embedded: true}
	}
	return store.Traits{Clock: clock{s}, Examine: s.examine}
}

// A clock is that of the database's server.
type clock struct{ s *Store }

// Now implements [store.Clock].
func (c clock) Now(ctx context.Context) (time.Time, error) {
	return call(ctx, c.s, "read the time of", c.s.dialect.name, func(ctx context.Context, conn *sql.Conn) (time.Time, error) {
		micros, _, err := c.s.dialect.vet(ctx, c.s, conn)
		return time.UnixMicro(micros), err
	})
}

func (s *Store) examine(ctx context.Context) ([]store.Finding, error) {
	return call(ctx, s, "examine", s.dialect.name, func(ctx context.Context, conn *sql.Conn) ([]store.Finding, error) {
		e, err := s.dialect.examine(ctx, conn)
		if err == nil {
			e.servers, err = s.behind(ctx, conn)
		}
		if err != nil {
			return nil, err
		}
		return e.findings(), nil
	})
}
