package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

// Postgres is the dialect of PostgreSQL. The driver's errors must have the method SQLState()
// string, as those of jackc/pgx.
var Postgres = postgresDialect

// No statement has a backslash: with standard_conforming_strings off, the server reads it as an escape in plain literals too.
var postgresDialect = Dialect{
	name:    "postgres",
	create:  `CREATE TABLE IF NOT EXISTS ` + Table + ` (k TEXT COLLATE "C" PRIMARY KEY, v BYTEA NOT NULL, rev BIGINT NOT NULL)`,
	grant:   `GRANT SELECT, INSERT, UPDATE ON ` + Table + ` TO `,
	account: `SELECT quote_ident(current_user)`,
	probe:   probe,
	get:     `SELECT k, v, rev FROM ` + Table + ` WHERE k = $1 AND ` + postgresBytes + ` AND ` + postgresWritable,
	insert:  `INSERT INTO ` + Table + ` (k, v, rev) VALUES ($1, $2, $3) ON CONFLICT (k) DO NOTHING RETURNING k = $1 AND v = $2 AND rev = $3` + postgresReturning,
	update:  `UPDATE ` + Table + ` SET v = $1, rev = $2 WHERE k = $3 AND rev = $4 RETURNING k = $3 AND v = $1 AND rev = $2` + postgresReturning,
	list:    `SELECT k, v, rev FROM ` + Table + ` WHERE k >= $1 AND k < $2 AND ` + postgresBytes + ` AND ` + postgresWritable + ` ORDER BY k`,

	home:  homePostgres,
	meant: meantPostgres,
	swap:  swapPostgres,
	vet: func(ctx context.Context, _ *Store, conn *sql.Conn) (micros int64, started string, err error) {
		err = conn.QueryRowContext(ctx, `SELECT (extract(epoch from clock_timestamp()) * 1000000)::bigint,
			`+postgresStart).Scan(&micros, &started)
		return micros, started, err
	},
	reads: func(ctx context.Context, _ *Store, conn *sql.Conn) (reads bool, err error) {
		err = each(ctx, conn, func(rows *sql.Rows) error { return rows.Scan(&reads) }, `SELECT NOT `+postgresWritable)
		return reads, err
	},
	examine: examinePostgres,

	missing: "42P01",
	made:    "23505 42P07 42710", // by its entry of pg_type or pg_class; IF NOT EXISTS does not look for those not committed
	// https://www.postgresql.org/docs/current/errcodes-appendix.html. An error found before a statement
	// commits means it was not applied. An error that a retry may cure is still not ErrRefused.
	faults: []fault{
		{"42P01", store.ErrUnavailable, goneHint},
		{"28P01 28000", store.ErrRefused, "check user, password and pg_hba.conf"},
		{"3D000", store.ErrRefused, "there is no such database: make it, or name another"},
		{"42501", store.ErrRefused, "the account needs SELECT, INSERT and UPDATE on " + Table + ", and CREATE in its schema if the table is to be made"},
		{"25006", store.ErrRefused, readOnlyHint},
		{"42883", store.ErrRefused, "it must be PostgreSQL 10 or later"},
		{"42P10", store.ErrRefused, "the table " + Table + " has no primary key: ALTER TABLE " + Table + " ADD PRIMARY KEY (k)"},
		{"42703 42804 42809 22P02", store.ErrRefused, "the table " + Table + " is not one of Firn's: rename it, or name another database or schema"},
		{"42704 22023", store.ErrRefused, "the server does not know a setting of the URL, or not its value: correct it, or leave it out"},
		{"26000 42P05", store.ErrRefused, "a pooler that hands sessions on has no prepared statements: have the driver make none, with pgx by QueryExecModeExec"},
		{"3F000", store.ErrRefused, "there is no schema to make the table in: set search_path"},
		{"53100", store.ErrUnavailable, "free space on its disk"},
		{"53300", store.ErrUnavailable, "it has no connection left: raise max_connections, or close some"},
		{"57P01 57P02 57P03", store.ErrUnavailable, "it is starting or shutting down: try again"},
		{"40001 40P01", store.ErrConflict, "others wrote it"}, // above read committed, for the loser of every race
		{"40 08 53 55 57 58", store.ErrUnavailable, ""},       // undone, cut off, locked, canceled, or its disk
	},
}

// poolerHint is for settings that a session begins with: PgBouncer would have to open sessions for them alone.
const poolerHint = "the pooler passes no such setting on: leave it out of the URL, and set it for the account, as in ALTER ROLE firn SET search_path = shop"

// postgresBytes makes the server send bytes in the text format that drivers read, whatever its settings.
const postgresBytes = `set_config('bytea_output', 'hex', true) = 'hex'`

// postgresHome finds the schema by the present search_path, and by the one the session began with: the
// first in the path that has the table, or else the first of all.
const (
	postgresHome = `WITH here AS (SELECT ` + postgresSchema + ` AS schema, set_config('search_path', reset_val, true) FROM pg_settings WHERE name = 'search_path')
		SELECT schema, ` + postgresSchema + ` FROM here`
	postgresSchema = `COALESCE((SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass('` + Table + `')), quote_ident(current_schema()), '')`
)

// homePostgres refuses a session whose search_path has changed since the session began and now leads
// elsewhere, as by another client of a pooler: other sessions would have another store.
func homePostgres(ctx context.Context, _ *Store, conn *sql.Conn) (schema string, err error) {
	var first string
	err = each(ctx, conn, func(rows *sql.Rows) error { return rows.Scan(&schema, &first) }, postgresHome)
	if err == nil && schema != first {
		err = fmt.Errorf("%w: its search_path was set since it began, and leads to schema %q instead of %q: "+
			"set it for the role, the database or in the URL, and share no session of a pooler with those who set it", errUnfit, schema, first)
	}
	return schema, err
}

// postgresElsewhere lists the schemas that have a table of that name; a condition on others must follow. Pg_class shows all tables,
// whatever the account may use.
const postgresElsewhere = `COALESCE((SELECT string_agg(quote_ident(nspname), ', ' ORDER BY nspname) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
	WHERE relname = '` + Table + `' AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't' AND `

// postgresMeant reads what speaks against a new table: schemas that have one, schemas in search_path that the server
// skips without a word, and whether the connection itself named one schema. A role's setting does not count as naming:
// it changes under running processes, and a restored database lacks it.
const postgresMeant = `WITH path AS (SELECT CASE WHEN word LIKE '"%' THEN replace(substr(word, 2, length(word) - 2), '""', '"') ELSE lower(word) END AS name
		FROM (SELECT found[1] AS word FROM regexp_matches(current_setting('search_path'), '("(?:[^"]|"")*"|[^",[:space:]]+)', 'g') AS found) AS words)
	SELECT current_setting('search_path'), ` + postgresElsewhere + `nspname IS DISTINCT FROM current_schema()), ''),
		COALESCE((SELECT string_agg(quote_ident(name), ', ') FROM path WHERE name NOT IN ('$user', 'pg_temp', '')
			AND NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = name)), ''),
		COALESCE((SELECT string_agg(quote_ident(nspname), ', ') FROM path JOIN pg_namespace ON nspname = CASE name WHEN '$user' THEN current_user::text ELSE name END
			WHERE NOT has_schema_privilege(pg_namespace.oid, 'USAGE')), ''),
		(SELECT source = 'client' FROM pg_settings WHERE name = 'search_path') AND (SELECT count(*) = 1 AND min(name) <> '$user' FROM path)`

// meantPostgres refuses a new table where it may be another, empty store beside the one that other processes use: a
// schema that is being restored, or whose USAGE was revoked, is skipped in search_path, and the next one taken.
func meantPostgres(ctx context.Context, s *Store, conn *sql.Conn) error {
	var path, others, absent, unusable string
	var named bool
	if err := each(ctx, conn, func(rows *sql.Rows) error {
		return rows.Scan(&path, &others, &absent, &unusable, &named)
	}, postgresMeant); err != nil {
		return err
	}
	switch {
	case others != "" && !named:
		return fmt.Errorf("%w: the database has the table in schema %s, and search_path (%s) does not lead there: GRANT USAGE ON SCHEMA to the account, or set search_path, as by ?search_path= in the URL; "+
			"only if a second store is meant, which repeats the ids of the first, make its table by hand: %s", store.ErrRefused, others, path, s.dialect.create)
	case absent != "":
		return fmt.Errorf("%w: there is no table, and search_path (%s) names schema %s, which does not exist: restore or create it, or set search_path; "+
			"or make the table by hand: %s", store.ErrRefused, path, absent, s.dialect.create)
	case unusable != "":
		return fmt.Errorf("%w: there is no table, and search_path (%s) names schema %s, which the account may not use: GRANT USAGE ON SCHEMA to it, or set search_path; "+
			"or make the table by hand: %s", store.ErrRefused, path, unusable, s.dialect.create)
	}
	return nil
}

// postgresReturning makes a write return: whether the row is as written; whether the table is logged (a
// publishable table is neither unlogged, temporary nor foreign; a rule that writes to another table
// instead has no tableoid, which is an error; nor has a view, but it may have a column of that name); the life of the store, that is the server's
// timeline and start, the database and the table, since a copy may get the name of either; and whether it waits for a standby. Until its commit, it makes the server wait, and send the
// warning that the wait was cut short, whatever the session's settings.
const postgresReturning = ` AND pg_relation_is_publishable(` + Table + `.tableoid)
	AND (SELECT relkind IN ('r', 'p') FROM pg_class WHERE oid = pg_typeof(` + Table + `.*)::text::regclass), pg_walfile_name(pg_current_wal_insert_lsn()), ` + postgresStart + ` || ' ' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || '` + Table + `'::regclass::oid,
	current_setting('synchronous_standby_names'), set_config('synchronous_commit', 'on', true), set_config('client_min_messages', 'warning', true)`

// postgresWritable is false on a standby too.
const postgresWritable = `current_setting('transaction_read_only') = 'off'`

// postgresStart is in microseconds: a machine without a clock of its own may start its server in the same
// millisecond of the same wrong second at each boot.
const postgresStart = `(extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint::text`

// postgresCommitted asks, right after a write, whether the session is still in the write's transaction.
const postgresCommitted = `SELECT txid_current_if_assigned() IS NULL`

// swapPostgres treats a commit with a warning as unconfirmed: if a time-out or an operator cancels the
// wait for standbys, perhaps no standby has the write. And a trigger that returns OLD makes the server report
// "UPDATE 1" although nothing changed.
func swapPostgres(ctx context.Context, s *Store, conn *sql.Conn, statement string, args []any) (life string, err error) {
	var asWritten bool
	var file, started, standbys string
	err = each(ctx, conn, func(rows *sql.Rows) error {
		var set any
		return rows.Scan(&asWritten, &file, &started, &standbys, &set, &set)
	}, statement, args...)
	warning := s.dialect.seen(conn).Warning
	switch {
	case err != nil:
		return "", err
	case file == "":
		return "", store.ErrConflict
	case !asWritten:
		return "", unconfirmed("the table is UNLOGGED, temporary, foreign or a view, or has something else than was written: ALTER TABLE %s SET LOGGED, or remove the trigger that changes it", Table)
	case warning != "":
		return "", unconfirmed("the server warns: %s; see to its standbys, and to who cancels statements", warning)
	case s.dialect.ask == nil && standbys != "":
		return "", unconfirmed("the server waits for standbys, and would tell by a warning alone that it did not: " +
			"show the driver's warnings by Postgres.WithSession")
	case s.dialect.ask == nil:
		var committed bool
		if err := conn.QueryRowContext(ctx, postgresCommitted).Scan(&committed); err != nil {
			hint, _ := s.dialect.classify(err)
			return "", unconfirmed("whether it is committed could not be asked: %s", strings.TrimSuffix(err.Error()+"; "+hint, "; "))
		} else if !committed {
			discard(conn)
			return "", unconfirmed(openHint)
		}
	}
	const timeline = 8 // digits at the start of a log file's name
	return fmt.Sprintf("%.*s %s", timeline, file, started), nil
}

// What may be wrong with the table.
const (
	standsFor = "no table but stands for one"
	unlogged  = "UNLOGGED"
)

// postgresFacts are the inputs of an examination. Backups and logical subscribers read the log too and
// are never promoted; but a write may wait for one of them instead of a standby, since "*" names all, and
// if two standbys share a name, in whatever case, it may wait for either. Writes wait for one standby under "a, b" and "ANY
// 1 (a, b)".
//
// Some settings make the server continue where it should stop: after a failed sync, or a damaged page.
const postgresFacts = `SELECT COALESCE((SELECT string_agg(name || ' ' || setting, ', ') FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'
		OR name IN ('zero_damaged_pages', 'ignore_checksum_failure', 'ignore_invalid_pages', 'data_sync_retry') AND setting = 'on'), ''),
	COALESCE((SELECT min(CASE WHEN relkind NOT IN ('r', 'p') THEN '` + standsFor + `' WHEN relpersistence <> 'p' THEN '` + unlogged + `' END)
		FROM pg_class WHERE oid = '` + Table + `'::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '` + Table + `'::regclass)), ''),
	EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = '` + Table + `'::regclass OR srrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '` + Table + `'::regclass)),
	EXISTS (SELECT FROM pg_replication_origin), ` + postgresElsewhere + `pg_class.oid <> '` + Table + `'::regclass), ''),
	current_setting('server_version_num')::int, NOT ` + postgresWritable + `, CASE WHEN names = '' THEN 0 ELSE COALESCE(substring(upper(names) FROM '^(?:(?:FIRST|ANY)[[:space:]]+)?([0-9]+)[[:space:]]*[(]'), '1')::int END, names LIKE '%*%', standbys.*
FROM (SELECT CASE current_setting('max_wal_senders') WHEN '0' THEN '' ELSE trim(current_setting('synchronous_standby_names')) END AS names) AS setting,
	(SELECT count(*), count(*) FILTER (WHERE sync_state IS NULL), count(*) FILTER (WHERE sync_state = 'async'), count(*) > count(DISTINCT lower(application_name))
		FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'
		AND (COALESCE(sync_state, 'async') <> 'async' OR pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid IS NOT NULL))) AS standbys`

func examinePostgres(ctx context.Context, conn *sql.Conn) (examination, error) {
	var lax, wrong string
	var version int
	var anybody, alike bool
	e := examination{settings: "fsync on, full_page_writes on", advice: "set fsync and full_page_writes on, and what skips or retries over damage off, or use a strict pool"}
	r := replicas{setting: "synchronous_standby_names", advice: "list all that may be promoted in synchronous_standby_names, as in ANY 2 (a, b)"}
	err := conn.QueryRowContext(ctx, postgresFacts).Scan(&lax,
		&wrong, &e.overwritten, &e.replays, &e.others, &version, &e.readOnly, &r.waits, &anybody, &r.all, &r.unknown, &r.behind, &alike)
	e.denied = denied(ctx, conn, "42501")
	if e.durable = lax == "" && wrong == ""; lax != "" {
		e.settings = lax
	}
	if why, update := forgets(version); why != "" {
		e.durable, e.settings, e.advice = false, why, update
	}
	switch wrong {
	case unlogged:
		e.settings, e.advice = "table "+Table+" "+wrong, "have an ordinary table, ALTER TABLE "+Table+" SET LOGGED, partitions too: no standby has others"
	case standsFor:
		e.settings, e.advice = "table "+Table+" "+wrong, "name another database or schema, or put an ordinary table in its place: nothing shows what is behind a view or a foreign table"
	}
	r.mixed = anybody || alike
	e.replicas = r.finding()
	if r.waits > 0 && e.replicas.Verdict == store.Good && hasty(version) {
		e.replicas.Verdict = store.Doubtful
		e.replicas.Says += "; but in this version not in the first moments after a restart"
		e.replicas.Advice = "update PostgreSQL to 17.5, 16.9, 15.13, 14.18, 13.21 or later"
	}
	return e, err
}

// forgets says why a version may lose what it has confirmed, and what to do about it.
func forgets(version int) (why, advice string) {
	switch major, minor := version/10_000, version%10_000; {
	case major == 14 && minor < 4: // bug 17485
		return fmt.Sprintf("PostgreSQL 14.%d: REINDEX and CREATE INDEX CONCURRENTLY make indexes without some rows", minor), "update PostgreSQL to 14.4 or later, and then REINDEX TABLE " + Table
	case major < 10, major == 10 && minor < 7, major == 11 && minor < 2: // data_sync_retry
		return "this version syncs a file again that could not be synced, and takes that for success", "update PostgreSQL to 10.7, 11.2 or later"
	}
	return "", ""
}

// hasty reports whether a server does not wait for standbys until its checkpointer has started; all
// versions of May 2025 fixed that.
func hasty(version int) bool {
	mended, known := map[int]int{13: 21, 14: 18, 15: 13, 16: 9, 17: 5}[version/10_000]
	return version/10_000 < 13 || known && version%10_000 < mended
}
