package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
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
	insert: `INSERT INTO ` + Table + ` (k, v, rev) VALUES ($1, $2, $3) ON CONFLICT (k) DO NOTHING` + postgresReturning,
	update: `UPDATE ` + Table + ` SET v = $1, rev = $2 WHERE k = $3 AND rev = $4` + postgresReturning,
	list:   `SELECT k, v, rev FROM ` + Table + ` WHERE k >= $1 AND k < $2 ORDER BY k`,

	swap:     swapPostgres,
	clock:    clockPostgres,
	missing:  func(err error) bool { return sqlState(err) == "42P01" },
	undone:   undonePostgres,
	classify: classifyPostgres,
	examine:  examinePostgres,
}

// postgresReturning has a write say which life of the server makes it, and whether
// it waits for a standby. The life is the timeline and the server's start. A
// write waits as it should whatever its session is set to: synchronous_commit is
// on until its commit, and so are the messages, or a warning that the wait was cut
// short would not be sent.
const postgresReturning = ` RETURNING pg_walfile_name(pg_current_wal_insert_lsn()), date_part('epoch', pg_postmaster_start_time()),
	current_setting('synchronous_standby_names'), set_config('synchronous_commit', 'on', true), set_config('client_min_messages', 'warning', true)`

// swapPostgres takes a commit with a warning for one that is not confirmed. A wait
// for standbys that was canceled, by a time-out or an operator, ends in a warning
// and in success, and no standby may have the write.
func swapPostgres(ctx context.Context, s *Store, conn *sql.Conn, w write) (changed bool, life string, err error) {
	s.dialect.seen(conn) // forgets warnings about something else
	rows, err := conn.QueryContext(ctx, w.statement, w.args...)
	if err != nil {
		return false, "", err
	}
	var file, standbys string
	var started float64
	var set any
	for rows.Next() {
		changed = true
		if err := rows.Scan(&file, &started, &standbys, &set, &set); err != nil {
			return false, "", errors.Join(err, rows.Close())
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || !changed {
		return false, "", err
	}
	warning := s.dialect.seen(conn).Warning
	switch {
	case warning != "":
		return false, "", unconfirmed("the server warns: %s; see to its standbys, and to who cancels statements", warning)
	case standbys != "" && s.dialect.ask == nil:
		return false, "", unconfirmed("the server waits for standbys, and would tell by a warning alone that it did not: " +
			"show the driver's warnings by Postgres.WithSession")
	}
	const timeline = 8 // digits at the start of a log file's name
	return true, fmt.Sprintf("%.*s %.3f", timeline, file, started), nil
}

func clockPostgres(ctx context.Context, _ *Store, conn *sql.Conn) (micros int64, err error) {
	err = conn.QueryRowContext(ctx, `SELECT (extract(epoch from clock_timestamp()) * 1000000)::bigint`).Scan(&micros)
	return micros, err
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
	case "42883":
		return "it must be PostgreSQL 10 or later", store.ErrRefused
	case "42703", "42804", "42809", "22P02", "42P10":
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

func examinePostgres(ctx context.Context, conn *sql.Conn) ([]store.Finding, error) {
	var recovery bool
	var fsync, pages, isolation string
	r := replicas{setting: "synchronous_standby_names", advice: "list all that may be promoted in synchronous_standby_names, as in ANY 2 (a, b)"}
	var names string
	if err := conn.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_standby_names'), current_setting('transaction_isolation')`).
		Scan(&recovery, &fsync, &pages, &names, &isolation); err != nil {
		return nil, err
	}
	r.waits = waitsFor(names)
	// Backups and subscribers of tables read the log as well, and are never promoted.
	if err := conn.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE sync_state IS NULL), count(*) FILTER (WHERE sync_state = 'async')
		FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'
		AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid IS NOT NULL)`).
		Scan(&r.all, &r.unknown, &r.behind); err != nil {
		return nil, err
	}
	var may [3]bool
	if err := conn.QueryRowContext(ctx, `SELECT has_table_privilege($1, 'SELECT'), has_table_privilege($1, 'INSERT'), has_table_privilege($1, 'UPDATE')`, Table).
		Scan(&may[0], &may[1], &may[2]); err != nil {
		return nil, err
	}
	return []store.Finding{
		durability(fsync == "on" && pages == "on", "fsync "+fsync+", full_page_writes "+pages, "set both on, or use a strict pool"),
		isolated(isolation),
		privileges(may[0], may[1], may[2]),
		primary(recovery),
		r.finding(),
	}, nil
}

// waitsFor returns for how many standbys a write waits, by
// synchronous_standby_names: "a, b", "FIRST 2 (a, b, c)", "ANY 2 (a, b, c)" or "2 (a, b, c)".
func waitsFor(names string) int {
	if strings.TrimSpace(names) == "" {
		return 0
	}
	head, _, listed := strings.Cut(names, "(")
	words := strings.Fields(head)
	if !listed || len(words) == 0 {
		return 1
	}
	n, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return 1
	}
	return n
}
