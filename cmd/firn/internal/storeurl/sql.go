package storeurl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/hosturl"
	"github.com/firn-id/firn/store/sqlstore"
)

const (
	dialTimeout = 5 * time.Second
	// maxConns bounds connections, unless the URL does: a lease uses two at most.
	maxConns = 16
	// connLife has connections follow a database that moved behind its name.
	connLife = time.Minute
)

// openSQL makes a store of a database on another host.
func openSQL(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect, connections int) (store.Store, error) {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxLifetime(connLife)
	s, err := sqlstore.New(ctx, db, dialect)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// openMySQL opens mysql://USER:PASSWORD@HOST[:PORT]/DATABASE[?SETTINGS], with
// connections=N (at most), tls=true and tls_ca, tls_cert, tls_key and
// tls_server_name as settings.
func openMySQL(ctx context.Context, text string) (store.Store, error) {
	db, connections, err := mysqlDatabase(text)
	if err != nil {
		return nil, err
	}
	return openSQL(ctx, db, sqlstore.MySQL, connections)
}

// OpenMySQL opens the database of a mysql:// URL as it is, not as a store. It
// connects when it is first used. Its errors repeat no password in the URL; text
// that can be no such URL is [ErrURL].
func OpenMySQL(text string) (*sql.DB, error) {
	scheme, _, _ := strings.Cut(text, "://")
	if scheme != "mysql" {
		return nil, urlErrorf("%q is no URL of a MySQL or MariaDB: write mysql://USER:PASSWORD@HOST:PORT/DATABASE", Redact(text))
	}
	db, connections, err := mysqlDatabase(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", Redact(text), err)
	}
	db.SetMaxOpenConns(connections)
	return db, nil
}

func mysqlDatabase(text string) (db *sql.DB, connections int, err error) {
	u := hosturl.Parse(text, "3306")
	database := strings.TrimSuffix(u.Path, "/")
	if database == "" {
		u.Fail(errors.New("it names no database, as in mysql://USER:PASSWORD@HOST/DATABASE"))
	}
	if len(u.Hosts) > 1 {
		u.Fail(errors.New("it names more than one host: name the primary, or what leads to it"))
	}
	connections, ok := u.Int("connections", 1, 1000)
	if !ok {
		connections = maxConns
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.DBName = u.User, u.Password, "tcp", database
	cfg.TLS = u.TLS(u.Bool("tls"), "tls=true")
	if err := u.Err(); err != nil {
		return nil, 0, urlErrorf("%w: %w", store.ErrRefused, err)
	}
	cfg.Addr, cfg.Timeout = u.Hosts[0], dialTimeout
	cfg.InterpolateParams = true // one round trip a statement
	cfg.Logger = &mysql.NopLogger{}
	// The driver quotes parameters for this charset; without SET NAMES the server may use another.
	if err := cfg.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, 0, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, 0, err
	}
	return sql.OpenDB(connector), connections, nil
}

// openPostgres opens what libpq does by such a URL, several hosts and its
// settings, environment and password file included; connections=N is ours.
func openPostgres(ctx context.Context, text string) (store.Store, error) {
	cfg, err := pgx.ParseConfig(text)
	if err != nil {
		// Its text quotes the URL, with what it takes for the password left out.
		return nil, urlErrorf("%w: it is no URL that PostgreSQL takes: postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full; a password with one of @ : / ? # %% is escaped as in %%40", store.ErrRefused)
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "firn"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = dialTimeout
	}
	connections := maxConns
	if text, ok := cfg.RuntimeParams["connections"]; ok {
		if connections, err = strconv.Atoi(text); err != nil || connections < 1 || connections > 1000 {
			return nil, urlErrorf("%w: connections=%s is not a number from 1 to 1000", store.ErrRefused, text)
		}
		delete(cfg.RuntimeParams, "connections") // which the server does not know
	}
	if cfg.ValidateConnect == nil && slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port }) {
		// Otherwise the first host that answers would be taken, also if it is a standby since a failover.
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // one round trip a statement, through poolers too
	cfg.OnNotice = keepWarning
	return openSQL(ctx, stdlib.OpenDB(*cfg), sqlstore.Postgres.WithSession(takeWarning), connections)
}

const warningKey = "firn.warning"

// keepWarning leaves out what each write may warn of for days, that the database must be vacuumed
// before its transactions are used up.
func keepWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && n.File != "varsup.c" {
		c.CustomData()[warningKey] = n.Message
	}
}

func takeWarning(conn any) sqlstore.Session {
	c, ok := conn.(*stdlib.Conn)
	if !ok {
		return sqlstore.Session{Warning: fmt.Sprintf("a %T shows no warnings", conn)}
	}
	data := c.Conn().PgConn().CustomData()
	warning, _ := data[warningKey].(string)
	delete(data, warningKey)
	return sqlstore.Session{Warning: warning}
}
