package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/firn-id/firn/store"
)

// Postgres is the dialect of PostgreSQL. Which error means what is told by the
// driver's method SQLState() string, as jackc/pgx has it.
var Postgres = Dialect{
	name:  "postgres",
	probe: `SELECT k, v, rev FROM ` + Table + ` LIMIT 0`,
	create: `CREATE TABLE IF NOT EXISTS ` + Table + ` (
		k TEXT COLLATE "C" PRIMARY KEY, v BYTEA NOT NULL, rev BIGINT NOT NULL)`,
	get:    `SELECT v, rev FROM ` + Table + ` WHERE k = $1`,
	insert: `INSERT INTO ` + Table + ` (k, v, rev) VALUES ($1, $2, $3) ON CONFLICT (k) DO NOTHING`,
	update: `UPDATE ` + Table + ` SET v = $1, rev = $2 WHERE k = $3 AND rev = $4`,
	list:   `SELECT k, v, rev FROM ` + Table + ` WHERE k >= $1 AND k < $2 ORDER BY k`,
	now:    `SELECT (extract(epoch from clock_timestamp()) * 1000000)::bigint`,

	missing:  func(err error) bool { return sqlState(err) == "42P01" },
	undone:   undonePostgres,
	classify: classifyPostgres,
	examine:  examinePostgres,
}

// sqlState returns the code in err, or "".
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// undonePostgres tells a statement that was rolled back since others were at the
// same row. Above read committed that is what the loser of every race is told.
func undonePostgres(err error) bool {
	state := sqlState(err)
	return state == "40001" || state == "40P01"
}

// classifyPostgres tells the codes of
// https://www.postgresql.org/docs/current/errcodes-appendix.html apart. Each
// statement is a transaction of its own, so whatever is found before it commits
// was not applied; what another try may mend is not called refused all the same.
func classifyPostgres(err error) (hint string, kind error) {
	switch state := sqlState(err); state {
	case "":
		return unanswered(err)
	case "28P01", "28000":
		return "check user, password and pg_hba.conf", store.ErrRefused
	case "3D000":
		return "there is no such database: make it, or name another", store.ErrRefused
	case "42501":
		return "the account needs SELECT, INSERT and UPDATE on " + Table + ", and CREATE in its schema if the table is to be made", store.ErrRefused
	case "25006":
		return "it is a replica, or read-only: name the primary", store.ErrRefused
	case "42703", "42804", "42809", "42883", "22P02", "42P10":
		return "the table " + Table + " is not one of Firn's: rename it, or name another database or schema", store.ErrRefused
	case "3F000":
		return "there is no schema to make the table in: set search_path", store.ErrRefused
	case "53100":
		return "free space on its disk", store.ErrUnavailable
	case "53300":
		return "it has no connection left: raise max_connections, or close some", store.ErrUnavailable
	case "57P01", "57P02", "57P03":
		return "it is starting or shutting down: try again", store.ErrUnavailable
	default:
		switch {
		case strings.HasPrefix(state, "40"), strings.HasPrefix(state, "08"), strings.HasPrefix(state, "53"),
			strings.HasPrefix(state, "55"), strings.HasPrefix(state, "57"), strings.HasPrefix(state, "58"):
			return "", store.ErrUnavailable // taken back, cut off, locked, canceled, or its disk
		}
		return "", nil
	}
}

func examinePostgres(ctx context.Context, db *sql.DB) ([]store.Finding, error) {
	var recovery bool
	var commit, fsync, standby, isolation string
	if err := db.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync'),
		current_setting('synchronous_standby_names'), current_setting('transaction_isolation')`).
		Scan(&recovery, &commit, &fsync, &standby, &isolation); err != nil {
		return nil, err
	}
	var standbys int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_replication`).Scan(&standbys); err != nil {
		return nil, err
	}
	var may [3]bool
	if err := db.QueryRowContext(ctx, `SELECT has_table_privilege($1, 'SELECT'), has_table_privilege($1, 'INSERT'), has_table_privilege($1, 'UPDATE')`, Table).
		Scan(&may[0], &may[1], &may[2]); err != nil {
		return nil, err
	}
	return []store.Finding{
		durability(commit != "off" && fsync == "on", "fsync "+fsync+", synchronous_commit "+commit, "set fsync on and synchronous_commit on, or use a strict pool"),
		isolated(isolation),
		privileges(may[0], may[1], may[2]),
		primary(recovery),
		standbysOf(standbys, standby != "", "synchronous_standby_names"),
	}, nil
}
