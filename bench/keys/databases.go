package main

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

	"github.com/firn-id/firn/store/storetest/servers"
)

// The servers have little memory for pages, less than the index of the primary key that a million rows have:
// as in a database that has grown. In MariaDB that index has the rows.
const (
	mariaDBMemory  = "64M"
	postgresMemory = "8MB"
	// After a checkpoint PostgreSQL logs each page whole when it is written first. With a large index most pages are
	// touched for the first time; here checkpoints are more frequent instead.
	postgresLog = "64MB"
)

// payload is the rest of a row.
var payload = strings.Repeat("x", 100)

// A database is a server that keys are inserted into.
type database struct {
	name    string
	version string
	server  *servers.Server
	db      *sql.DB

	types   map[form]string
	bytes   string   // a literal of bytes, with %s for hexadecimal digits
	figures []string // what query returns, in this order
	settle  []string // statements after the inserts and before query
	query   string   // sizes of the table, then figures that count from the server's start
	counted int      // how many of the figures those are; their growth is the result
}

// column returns how a scheme's key is declared.
func (d *database) column(k scheme) string { return d.types[k.form] }

func (d *database) end() error {
	err := d.db.Close()
	d.server.Kill() // the other database is measured next
	return err
}

// measure inserts rows into a new table.
func (d *database) measure(ctx context.Context, s settings, k scheme) (result, error) {
	sources, err := k.open(s.writers)
	if err != nil {
		return result{}, err
	}
	for _, statement := range []string{
		`DROP TABLE IF EXISTS rows_`,
		`CREATE TABLE rows_ (id ` + d.column(k) + ` PRIMARY KEY, customer BIGINT NOT NULL, payload VARCHAR(100) NOT NULL)`,
		`CREATE INDEX customers ON rows_ (customer)`,
	} {
		if _, err := d.db.ExecContext(ctx, statement); err != nil {
			return result{}, err
		}
	}
	before, err := d.look(ctx)
	if err != nil {
		return result{}, err
	}
	started := time.Now()
	ended := make(chan error, s.writers)
	for w, next := range sources {
		go func() { ended <- d.insert(ctx, s, k, w, next) }()
	}
	for range sources {
		err = errors.Join(err, <-ended)
	}
	r := result{took: time.Since(started)}
	if err != nil {
		return r, err
	}
	for _, statement := range d.settle {
		if _, err := d.db.ExecContext(ctx, statement); err != nil {
			return r, err
		}
	}
	r.figures, err = d.look(ctx)
	for i := len(r.figures) - d.counted; i >= 0 && i < len(r.figures); i++ {
		r.figures[i] -= before[i]
	}
	return r, err
}

// look returns the figures now.
func (d *database) look(ctx context.Context) ([]float64, error) {
	found := make([]float64, len(d.figures))
	into := make([]any, len(found))
	for i := range found {
		into[i] = &found[i]
	}
	return found, d.db.QueryRowContext(ctx, d.query).Scan(into...)
}

// insert inserts a writer's share of the rows.
func (d *database) insert(ctx context.Context, s settings, k scheme, writer int, next source) error {
	columns := "(id, customer, payload)"
	if k.form == automatic {
		columns = "(customer, payload)"
	}
	var statement strings.Builder
	for n := 0; n < s.rows/s.writers; n += s.batch {
		statement.Reset()
		statement.WriteString("INSERT INTO rows_ " + columns + " VALUES ")
		for i := range s.batch {
			key, err := next(ctx)
			if err != nil {
				return err
			}
			switch k.form {
			case bytes12, bytes16:
				key = fmt.Sprintf(d.bytes, key) + ","
			case text:
				key = "'" + key + "',"
			case number:
				key += ","
			}
			if i > 0 {
				statement.WriteByte(',')
			}
			// A customer has ten rows, which are inserted together.
			fmt.Fprintf(&statement, "(%s%d,'%s')", key, (n+i)/10*s.writers+writer, payload)
		}
		if _, err := d.db.ExecContext(ctx, statement.String()); err != nil {
			return err
		}
	}
	return nil
}

// mariaDB starts a MariaDB. Each transaction is synced, which is its default.
func mariaDB(ctx context.Context, t testing.TB) (*database, error) {
	d := &database{
		name:   "MariaDB",
		server: servers.MariaDB(t, "--innodb-buffer-pool-size="+mariaDBMemory, "--innodb-log-file-size=256M", "--innodb-monitor-enable=index_page_splits"),
		types:  map[form]string{automatic: "BIGINT AUTO_INCREMENT", number: "BIGINT", bytes12: "BINARY(12)", bytes16: "BINARY(16)", text: "CHAR(36) CHARACTER SET ascii"},
		bytes:  "x'%s'",
		// InnoDB keeps the rows in the primary key's index, and the primary key in every other index.
		figures: []string{"table MB", "second index MB", "page splits", "written MB"},
		settle:  []string{"ANALYZE TABLE rows_"},
		query: `SELECT data_length/1e6, index_length/1e6,
			(SELECT count FROM information_schema.innodb_metrics WHERE name = 'index_page_splits'),
			(SELECT sum(variable_value)/1e6 FROM information_schema.global_status WHERE variable_name IN ('INNODB_DATA_WRITTEN', 'INNODB_OS_LOG_WRITTEN'))
			FROM information_schema.tables WHERE table_schema = 'keys_' AND table_name = 'rows_'`,
		counted: 2,
	}
	server := "root@tcp(" + d.server.Addr() + ")/"
	return d, d.open(ctx, "mysql", server, server+"keys_", "SELECT concat('MariaDB ', version())")
}

// postgres starts a PostgreSQL. Each transaction is synced, which is its default.
func postgres(ctx context.Context, t testing.TB) (*database, error) {
	d := &database{
		name:   "PostgreSQL",
		server: servers.Postgres(t, "-c", "shared_buffers="+postgresMemory, "-c", "max_wal_size="+postgresLog),
		types:  map[form]string{automatic: "BIGINT GENERATED ALWAYS AS IDENTITY", number: "BIGINT", bytes12: "BYTEA", bytes16: "UUID", text: "CHAR(36)"},
		bytes:  "'%s'",
		// PostgreSQL counts no splits: a page that splits is half empty, so the leaves tell.
		figures: []string{"table MB", "primary index MB", "leaf pages", "full %", "log MB"},
		settle:  []string{"ANALYZE rows_"},
		query: `SELECT pg_relation_size('rows_')/1e6, pg_relation_size('rows__pkey')/1e6, leaf_pages, CASE WHEN leaf_pages = 0 THEN 0 ELSE avg_leaf_density END,
			pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')/1e6 FROM pgstatindex('rows__pkey')`,
		counted: 1,
	}
	d.settle = append(d.settle, "CHECKPOINT") // so that the next table begins as this one did
	server := "postgres://postgres@" + d.server.Addr() + "/"
	if err := d.open(ctx, "pgx", server+"postgres", server+"keys_", "SELECT 'PostgreSQL ' || current_setting('server_version')"); err != nil {
		return nil, err
	}
	if _, err := d.db.ExecContext(ctx, "CREATE EXTENSION pgstattuple"); err != nil {
		return nil, errors.Join(err, d.end())
	}
	return d, nil
}

// open connects to a new database on the server.
func (d *database) open(ctx context.Context, driver, server, dsn, version string) error {
	db, err := sql.Open(driver, server)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE keys_")
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if d.db, err = sql.Open(driver, dsn); err != nil {
		return err
	}
	return d.db.QueryRowContext(ctx, version).Scan(&d.version)
}
