package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
)

// MySQL is the dialect of MySQL and MariaDB, with the engine InnoDB. The text of the driver's errors
// must begin with "Error 1146", as in go-sql-driver/mysql: its error type has no method that returns the number.
var MySQL = mysqlDialect

var mysqlDialect = Dialect{
	name:    "mysql",
	create:  `CREATE TABLE IF NOT EXISTS ` + Table + ` (k VARBINARY(512) NOT NULL PRIMARY KEY, v MEDIUMBLOB NOT NULL, rev BIGINT NOT NULL) ENGINE=InnoDB`,
	grant:   `GRANT SELECT, INSERT, UPDATE ON ` + Table + ` TO `,
	account: `SELECT CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))`,
	probe:   `SELECT k, v, rev FROM ` + Table + mysqlKeyed + ` LIMIT 0`,
	get:     `SELECT k, v, rev FROM ` + Table + ` WHERE k = ? AND ` + mysqlFit + ` AND ` + mysqlWritable + ` LIMIT 2`, // or sql_select_limit would hide that there are two
	// With IGNORE the affected rows are the inserted rows, whatever the driver means by affected. It would
	// also truncate a long value, but values are checked before.
	insert: `INSERT IGNORE INTO ` + Table + ` (k, v, rev) SELECT ?, ?, ? FROM DUAL WHERE ` + mysqlGuard +
		` AND NOT EXISTS (SELECT 1 FROM ` + Table + mysqlKeyed + ` WHERE FALSE)`,
	update: `UPDATE ` + Table + ` SET v = ?, rev = ? WHERE k = ? AND rev = ? AND ` + mysqlGuard,
	list:   `SELECT k, v, rev FROM ` + Table + ` WHERE k >= ? AND k < ? AND ` + mysqlFit + ` AND ` + mysqlWritable + ` ORDER BY k LIMIT 18446744073709551615`, // or sql_select_limit would cut it off

	home: func(ctx context.Context, _ *Store, conn *sql.Conn) (schema string, err error) {
		var name sql.NullString
		err = each(ctx, conn, func(rows *sql.Rows) error { return rows.Scan(&name) }, "SELECT CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`')")
		if err == nil && name.Valid && (!strings.HasPrefix(name.String, "`") || !strings.HasSuffix(name.String, "`")) {
			err = fmt.Errorf("%w: character_set_results has ASCII sent as other bytes, as ucs2 has, so that answers cannot be read: leave it out, or set charset=utf8mb4 for the driver", errUnfit)
		}
		return name.String, err
	},
	read:    readMySQL,
	swap:    swapMySQL,
	cluster: mysqlCluster,
	vet: func(ctx context.Context, s *Store, conn *sql.Conn) (int64, string, error) {
		seen, err := vetMySQL(ctx, s, conn)
		return seen.micros, serverOf(seen.life), err
	},
	reads: func(ctx context.Context, s *Store, conn *sql.Conn) (bool, error) {
		seen, err := vetMySQL(ctx, s, conn)
		return seen.reads, err
	},
	revision: "BIGINT",
	examine:  examineMySQL,

	missing: "1146",
	// https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html
	faults: []fault{
		{"1146", store.ErrUnavailable, goneHint},
		{"1044 1045 1698 1130 1251", store.ErrRefused, "check user, password, and from which hosts it may come"},
		{"1046 1049", store.ErrRefused, "there is no such database: make it, or name another"},
		{"1142 1143 1227 1370", store.ErrRefused, "the account needs SELECT, INSERT and UPDATE on " + Table + ", and CREATE if the table is to be made"},
		{"1290 1836 1223", store.ErrRefused, primaryHint},
		{"1792", store.ErrRefused, readOnlyHint},
		{"1054 1366 1264 1406 1347 1356", store.ErrRefused, "the table " + Table + " is not one of Firn's: rename it, or name another database"},
		{"1104", store.ErrRefused, "max_join_size is lower than Firn's statements need: raise it, or set sql_big_selects=1 for the driver"},
		{"1176", store.ErrRefused, "the table " + Table + " is not one of Firn's, or a copy without the primary key: rename it, or ALTER TABLE " + Table + " ADD PRIMARY KEY (k)"},
		{"1021 1114 3675", store.ErrUnavailable, "free space on its disk"},
		{"1040 1203 1226", store.ErrUnavailable, "it has no connection left: raise max_connections, or close some"},
		{"1053 1077 1079 3169", store.ErrUnavailable, "it is shutting down: try again"},
		{"1213 1020", store.ErrConflict, "others wrote it"}, // a deadlock; in a cluster, a race lost to another member; with snapshot isolation, any race
		{"1047", store.ErrUnavailable, "this member of the cluster is joining, or without quorum: wait, or name a member that is synced"},
		// Locks, time-outs, lost connections.
		{"1205 1317 1969 3024 1158 1159 1160 1161 1152 1184 1927 3101 4031", store.ErrUnavailable, ""},
	},
}

// mysqlKeyed makes the server refuse a table without a primary key, such as a copy made by CREATE TABLE
// ... AS SELECT: there two writers could insert the same key.
const mysqlKeyed = ` FORCE INDEX (PRIMARY)`

// mysqlNames maps newer names of settings to the older ones.
var mysqlNames = strings.NewReplacer("_source", "_master", "_replica_", "_slave_")

// mysqlFacts list by name the inputs of an examination: settings, counts, whether the account sees all processes, and
// the engine.
var mysqlFacts = []string{
	`SHOW SESSION VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'innodb_doublewrite', 'sync_binlog',
		'log_bin', 'read_only', 'tx_read_only', 'transaction_read_only', 'version', 'rpl_semi_sync_slave_enabled', 'wsrep_provider_options', 'wsrep_start_position', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled',
		'rpl_semi_sync_master_wait_for_slave_count', 'rpl_semi_sync_source_wait_for_replica_count')`,
	`SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Slaves_running', 'Rpl_status', 'Innodb_redo_log_enabled', 'Rpl_semi_sync_master_status',
		'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_clients', 'Rpl_semi_sync_source_clients')`,
	`SELECT privilege_type, 'granted' FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS'`,
	`SELECT 'dumps', count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'`,
	`SELECT 'engine', COALESCE(engine, '') FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '` + Table + `'`,
}

// mysqlFollows is for MySQL, where accounts need SELECT on performance_schema to see it.
const mysqlFollows = `SELECT 'slaves_running', count(*) FROM performance_schema.replication_connection_status WHERE service_state <> 'OFF'`

func examineMySQL(ctx context.Context, conn *sql.Conn) (examination, error) {
	is := map[string]string{}
	ask := func(statement string) error {
		return each(ctx, conn, func(rows *sql.Rows) error {
			var name, value string
			err := rows.Scan(&name, &value)
			is[mysqlNames.Replace(strings.ToLower(name))] = value
			return err
		}, statement)
	}
	for _, statement := range mysqlFacts {
		if err := ask(statement); err != nil {
			return examination{}, err
		}
	}
	running, shown := is["slaves_running"] // only MariaDB shows it to every account
	if !shown {
		if err := ask(mysqlFollows); err != nil && codeOf(err) != "1142" {
			return examination{}, err
		}
		running, shown = is["slaves_running"]
	}
	flush, binlog, galera := is["innodb_flush_log_at_trx_commit"], is["sync_binlog"], is["wsrep_provider_options"]
	e := examination{
		durable:  is["engine"] == "InnoDB" && flush == "1",
		settings: "engine " + is["engine"] + ", innodb_flush_log_at_trx_commit " + flush,
		advice:   "set engine InnoDB, innodb_flush_log_at_trx_commit 1 and sync_binlog 1, or use a strict pool",
		denied:   denied(ctx, conn, "1142", "1143"),
		readOnly: is["read_only"] == "ON" || is["tx_read_only"] == "ON" || is["transaction_read_only"] == "ON",
		follows:  shown && running != "0",
		unseen:   !shown,
		splits:   galeraHas(galera, "pc.ignore_sb") || galeraHas(galera, "pc.ignore_quorum"),
		forgets:  galeraHas(galera, "pc.recovery") && strings.HasSuffix(is["wsrep_start_position"], ":-1"),
		replicas: mysqlReplicas(is),
	}
	if is["log_bin"] == "ON" {
		e.settings += ", sync_binlog " + binlog
		e.durable = e.durable && binlog == "1"
	}
	switch method := is["innodb_flush_method"]; {
	case !slices.Contains(synced, strings.ToLower(method)):
		e.durable, e.settings, e.advice = false, "innodb_flush_method "+method, "leave innodb_flush_method as it is by default: by that one data files are not synced, and a loss of power brings older pages back"
	case !slices.Contains(untorn, strings.ToLower(is["innodb_doublewrite"])):
		e.durable, e.settings, e.advice = false, "innodb_doublewrite "+is["innodb_doublewrite"], "set innodb_doublewrite ON: otherwise a loss of power leaves pages torn, or brings older ones back"
	case is["innodb_redo_log_enabled"] == "OFF": // MySQL only
		e.durable, e.settings, e.advice = false, "the redo log is disabled", "ALTER INSTANCE ENABLE INNODB REDO_LOG"
	case is["log_bin"] == "ON" && is["rpl_status"] == "IDLE_SLAVE": // MariaDB only
		e.durable, e.settings, e.advice = false, "init_rpl_role SLAVE", "start the primary with init_rpl_role MASTER: at its start after a crash it would undo what it confirmed last"
	case is["log_bin"] == "ON" && is["rpl_semi_sync_slave_enabled"] == "ON" && undoes(is["version"]):
		e.durable, e.settings, e.advice = false, "rpl_semi_sync_slave_enabled ON", "update MariaDB, or leave that off on the primary: at its start after a crash it would undo what it confirmed last"
	}
	return e, nil
}

// galeraHas reports whether a setting is on in Galera's list of them, which shows each as it was typed.
func galeraHas(options, name string) bool {
	_, value, _ := strings.Cut(options, name+" = ")
	value, _, _ = strings.Cut(value, ";")
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(strings.TrimSpace(value)))
}

// synced are the values of innodb_flush_method by which data files are synced. By others a checkpoint discards the
// redo of pages that are only in the disk's cache. Versions without the setting sync.
var synced = []string{"", "fsync", "o_dsync", "o_direct", "normal", "unbuffered", "async_unbuffered"}

// untorn are the values of innodb_doublewrite by which a page that is half written is mended, as by full_page_writes in
// PostgreSQL, and data files are synced, which they are not by MariaDB's FAST.
var untorn = []string{"", "on", "true", "1", "detect_and_recover"}

// undoes reports whether a MariaDB that acknowledges as a replica takes that role when it starts,
// and undoes transactions that no replica is known to have: since 10.6, until the setting
// init_rpl_role decided the role (MDEV-33465).
func undoes(version string) bool {
	var major, minor, patch int
	if n, err := fmt.Sscanf(version, "%d.%d.%d-MariaDB", &major, &minor, &patch); n < 3 || err != nil {
		return false
	}
	series := 100*major + minor
	mended, known := map[int]int{1006: 19, 1011: 9, 1101: 6, 1102: 5, 1104: 3}[series]
	return known && patch < mended || !known && 1006 < series && series < 1104
}

// mysqlReplicas counts the replicas, and those that acknowledge writes.
func mysqlReplicas(is map[string]string) store.Finding {
	number := func(name string) int {
		n, _ := strconv.Atoi(is[name]) // 0 if the server does not show it
		return n
	}
	r := replicas{setting: "semi-synchronous replication", advice: "turn on semi-synchronous replication, here and on each of them"}
	switch _, shown := is["slaves_connected"]; { // MariaDB shows it to every account
	case shown:
		r.all = number("slaves_connected")
	case is["process"] == "":
		return store.Finding{Subject: "replicas", Verdict: store.Doubtful, Says: "unknown", Advice: "grant PROCESS to have them counted"}
	default:
		r.all = number("dumps")
	}
	r.behind = r.all
	if is["rpl_semi_sync_master_enabled"] == "ON" {
		r.waits = max(1, number("rpl_semi_sync_master_wait_for_slave_count")) // MariaDB lacks this setting
		if is["rpl_semi_sync_master_status"] == "ON" {
			r.behind = max(0, r.all-number("rpl_semi_sync_master_clients"))
		}
	}
	return r.finding()
}
