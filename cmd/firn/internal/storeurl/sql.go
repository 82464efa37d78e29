package storeurl

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/dial"
	"github.com/firn-id/firn/store/hosturl"
	"github.com/firn-id/firn/store/sqlstore"
)

const (
	dialTimeout = 5 * time.Second // of one host, without the look-up of its name
	// maxConnect bounds an attempt to connect to MySQL, look-up and login included: a silent name server takes 5 s.
	maxConnect = 15 * time.Second
	// maxConns bounds connections unless the URL sets a limit: a lease uses two at most.
	maxConns = 16
	// minConns: one may be taken for as long as an attempt to connect, and a holder would find its store too late.
	minConns = 2
	maxPing  = 2 * time.Second // the time that a look has
)

// openSQL opens a store in a database on another host.
func openSQL(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect, connections int) (store.Store, error) {
	db.SetMaxOpenConns(connections)
	s, err := sqlstore.Open(ctx, db, dialect)
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
	s, err := openSQL(ctx, db, sqlstore.MySQL, connections)
	if err != nil {
		return nil, err
	}
	// A server's init_connect may choose another, and not for administrators.
	var in string
	ctx, cancel := context.WithTimeout(ctx, maxConnect)
	defer cancel()
	named := strings.TrimSuffix(hosturl.Parse(text, "3306", "mysql").Path, "/")
	switch err = db.QueryRowContext(ctx, "SELECT COALESCE(DATABASE(), '')").Scan(&in); {
	case err != nil:
		err = fmt.Errorf("%w: ask for the database of its sessions: %w", store.ErrUnavailable, err)
	case !strings.EqualFold(in, named):
		err = fmt.Errorf("%w: the URL names database %s, and its sessions are in %q: remove USE from init_connect of the server", store.ErrRefused, named, in)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenMySQL opens the database of a mysql:// URL as it is, not as a store. It connects at its first
// use. Its errors repeat no password in the URL; for a text that cannot be such a URL the error is [ErrURL].
//
// Each of its statements is a transaction: without autocommit, as a server's setting, a second reading would
// show what the first one did.
func OpenMySQL(text string) (*sql.DB, error) {
	scheme, _, _ := strings.Cut(text, "://")
	if scheme != "mysql" {
		return nil, urlErrorf("%q is not the URL of a MySQL or MariaDB: write mysql://USER:PASSWORD@HOST:PORT/DATABASE", Redact(text))
	}
	db, connections, err := mysqlDatabase(text, func(cfg *mysql.Config) error {
		cfg.Params = map[string]string{"autocommit": "1"}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%q: %w", Redact(text), err)
	}
	db.SetMaxOpenConns(connections)
	return db, nil
}

// MySQLHint returns a way out of an error of a database from [OpenMySQL]; "" if none is known. Tables are those it is read
// for.
func MySQLHint(err error, tables string) string {
	failed, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return ""
	}
	switch failed.Number {
	case 1044, 1045, 1130, 1251, 1698:
		return "check user, password, from which hosts the account may come, and which databases it may use"
	case 1049:
		return "there is no such database: name another"
	case 1142, 1143:
		return "grant the account SELECT on " + tables
	case 1040, 1203, 1226:
		return "it has no connection left: raise max_connections, or close some"
	}
	return ""
}

func mysqlDatabase(text string, options ...mysql.Option) (db *sql.DB, connections int, err error) {
	if instead := fromDSN(text); instead != "" {
		return nil, 0, urlErrorf("%w: did you mean %s?", store.ErrRefused, instead)
	}
	u := hosturl.Parse(text, "3306", "mysql")
	database := strings.TrimSuffix(u.Path, "/")
	if database == "" {
		u.Fail(errors.New("it names no database, as in mysql://USER:PASSWORD@HOST/DATABASE"))
	}
	if len(u.Hosts) > 1 {
		u.Fail(errors.New("it names more than one host: name the primary, or a proxy to it"))
	}
	connections, ok := u.Int("connections", minConns, 1000)
	if !ok {
		connections = maxConns
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.DBName = u.User, u.Password, "tcp", database
	configure := u.TLS(u.Bool("tls"), "tls=true")
	if err := u.Err(); err != nil {
		return nil, 0, urlErrorf("%w: %w", store.ErrRefused, err)
	}
	if configure != nil {
		options = append(options, mysql.BeforeConnect(func(_ context.Context, cfg *mysql.Config) (err error) {
			if cfg.TLS = configure(); cfg.TLS.ServerName == "" {
				cfg.TLS.ServerName, _, err = net.SplitHostPort(cfg.Addr)
			}
			return err
		}))
	}
	cfg.Addr, cfg.Timeout = u.Hosts[0], maxConnect
	report := &dial.Report{}
	cfg.DialFunc = (&dial.Dialer{Check: mysqlCheck, Report: report}).Dial
	cfg.InterpolateParams = true // one round trip per statement
	cfg.Logger = &mysql.NopLogger{}
	// A server does not notice that a client has gone while a statement of it waits for a row: with the default of 50s the
	// connections that are given up use up max_connections.
	cfg.Params = map[string]string{"innodb_lock_wait_timeout": "5"}
	// The driver quotes parameters for this charset; without SET NAMES the server may use another.
	if err := cfg.Apply(append(options, mysql.Charset("utf8mb4", ""))...); err != nil {
		return nil, 0, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, 0, err
	}
	return sql.OpenDB(sqlstore.Guarded(loginBounded{connector}, func(err error) error {
		if why := report.Err(); why != nil && errors.Is(err, mysql.ErrInvalidConn) { // which the driver returns for any failed read
			return fmt.Errorf("%w: %w", err, why)
		}
		return err
	})), connections, nil
}

// fromDSN returns the URL of a database that the text names in the driver's own form, USER:PASSWORD@tcp(HOST:PORT)/DATABASE;
// "" for other texts. It repeats nothing before the last @: that may be a password.
func fromDSN(text string) string {
	at := strings.LastIndexByte(text, '@')
	cfg, err := mysql.ParseDSN(text[at+1:])
	if at < 0 || err != nil || !strings.HasPrefix(text[at:], "@tcp(") {
		return ""
	}
	return "mysql://USER:PASSWORD@" + cfg.Addr + "/" + url.PathEscape(cfg.DBName) + ", with settings as in docs/stores.md"
}

// loginBounded bounds an attempt to connect, login included: the driver bounds only the dial.
type loginBounded struct{ driver.Connector }

func (b loginBounded) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, maxConnect)
	defer cancel()
	return b.Connector.Connect(ctx)
}

// openPostgres opens any URL that libpq accepts, including several hosts and libpq's settings,
// environment and password file; connections=N is our own setting.
func openPostgres(ctx context.Context, text string) (store.Store, error) {
	dialer := listed()
	connections, hosts, err := parsePostgres(text, dialer)
	if err != nil {
		return nil, err
	}
	s, err := openSQL(ctx, sql.OpenDB(sqlstore.Guarded(&hostsInTurn{Connector: hosts[0], url: text, dialer: dialer, latest: hosts}, onOneLine)), sqlstore.Postgres.WithSession(session), connections)
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok && (failed.Code == "42704" || failed.Code == "22023") {
		err = urlError{err} // a setting that the server does not know, or not its value
	}
	return s, err
}

// parsePostgres returns how many connections a URL allows, and one connector for each of its hosts, which begins with that
// host. It reads the files that the URL names: certificates and passwords.
func parsePostgres(text string, dialer *dial.Dialer) (connections int, hosts []driver.Connector, err error) {
	if err := oneLogin(text); err != nil {
		return 0, nil, err
	}
	cfg, err := pgx.ParseConfig(text)
	if err != nil {
		// The driver's text quotes the URL, without what the driver takes for the password.
		return 0, nil, urlErrorf("%w: it is not a URL that PostgreSQL accepts: write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full; in the password, escape @ : / ? # %% as in %%40", store.ErrRefused)
	}
	if err := named(text, cfg); err != nil {
		return 0, nil, err
	}
	forLibpq(cfg.RuntimeParams)
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "firn"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = dialTimeout
	}
	connections = maxConns
	if text, ok := cfg.RuntimeParams["connections"]; ok {
		if connections, err = strconv.Atoi(text); err != nil || connections < minConns || connections > 1000 {
			return 0, nil, urlErrorf("%w: connections=%s is not a number from %d to 1000", store.ErrRefused, text, minConns)
		}
		delete(cfg.RuntimeParams, "connections") // the server does not know it
	}
	if cfg.ValidateConnect == nil && slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port }) {
		// Otherwise the driver would use the first host that answers, even if it has been a standby since
		// a failover.
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // one round trip per statement, through poolers too
	cfg.OnNotice = dropVacuumWarnings
	guardPostgres(&cfg.Config, dialer)
	return connections, fromEachHost(cfg), nil
}

// oneLogin refuses a URL whose password may be unescaped: the driver would take its rest for hosts, look them up and name
// them in errors. So the only @ stands before the hosts.
func oneLogin(text string) error {
	_, rest, _ := strings.Cut(text, "://")
	if login, after, ok := strings.Cut(rest, "@"); ok && (strings.Contains(login, "/") || strings.Contains(after, "@")) {
		return urlErrorf("%w: what stands before the only @ is USER:PASSWORD, with the characters @ : / ? # %% escaped as in %%40; elsewhere too, @ is %%40", store.ErrRefused)
	}
	return nil
}

// onOneLine gives the driver's errors, which have a line for each address, one line.
func onOneLine(err error) error {
	if text := err.Error(); strings.Contains(text, "\n\t") {
		return &store.TextError{Kind: err, Err: errors.New(strings.NewReplacer(":\n\t", ": ", "\n\t", "; ").Replace(text))}
	}
	return err
}

// forLibpq removes settings of libpq that the driver would send to the server, which does not know them. They are about
// what the driver does by itself, or not at all. Those that ask for security are left, and refused.
func forLibpq(settings map[string]string) {
	for _, name := range []string{"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "load_balance_hosts", "fallback_application_name", "sslcompression"} {
		delete(settings, name)
	}
	if settings["gssencmode"] != "require" {
		delete(settings, "gssencmode")
	}
}

// hostsInTurn connects to the hosts of a URL. The driver tries them in order, and waits for each: a host
// that hangs may take all of a call's time. So other connections begin with the next host after a second.
type hostsInTurn struct {
	driver.Connector // any of them
	url              string
	dialer           *dial.Dialer
	first            atomic.Uint32

	mu     sync.Mutex
	latest []driver.Connector // with each host as the first
}

// hosts reads the URL's files again, since they may have been renewed.
func (c *hostsInTurn) hosts() []driver.Connector {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, hosts, err := parsePostgres(c.url, c.dialer); err == nil { // otherwise a file may be half written
		c.latest = hosts
	}
	return c.latest
}

func fromEachHost(cfg *pgx.ConnConfig) (connectors []driver.Connector) {
	hosts := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	for i, h := range hosts {
		if i > 0 && h.Host == hosts[i-1].Host && h.Port == hosts[i-1].Port { // the same one without TLS
			continue
		}
		turned := cfg.Copy()
		turned.Host, turned.Port, turned.TLSConfig = h.Host, h.Port, h.TLSConfig
		turned.Fallbacks = slices.Concat(hosts[i+1:], hosts[:i])
		connectors = append(connectors, stdlib.GetConnector(*turned, stdlib.OptionShouldPing(pingFails)))
	}
	return connectors
}

// pingFails pings a connection that was idle, within a bound: the driver's own ping may take as long as an attempt
// to connect, if the network has forgotten the connection.
func pingFails(ctx context.Context, p stdlib.ShouldPingParams) bool {
	if p.IdleDuration <= time.Second {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, maxPing)
	defer cancel()
	return p.Conn.Ping(ctx) != nil // the driver's own ping then fails at once: the connection is closed
}

// Connect implements [driver.Connector].
func (c *hostsInTurn) Connect(ctx context.Context) (driver.Conn, error) {
	first, from := c.first.Load(), c.hosts()
	hangs := time.AfterFunc(time.Second, func() { c.first.CompareAndSwap(first, first+1) })
	defer hangs.Stop()
	conn, err := from[int(first)%len(from)].Connect(ctx)
	if err != nil {
		c.first.CompareAndSwap(first, first+1)
	}
	return conn, err
}

const warningKey = "firn.warning"

// dropVacuumWarnings drops the warning, repeated with each write for days, that the database must be vacuumed
// before its transaction ids run out.
func dropVacuumWarnings(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && n.File != "varsup.c" {
		c.CustomData()[warningKey] = n.Message
	}
}

func session(conn any) sqlstore.Session {
	c, ok := conn.(*stdlib.Conn)
	if !ok {
		return sqlstore.Session{Warning: fmt.Sprintf("warnings cannot be read from a %T", conn)}
	}
	inner := c.Conn().PgConn()
	warning, _ := inner.CustomData()[warningKey].(string)
	delete(inner.CustomData(), warningKey)
	return sqlstore.Session{Warning: warning, Idle: inner.TxStatus() == 'I'}
}
