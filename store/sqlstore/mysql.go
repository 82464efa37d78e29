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

// MySQL is the dialect of MySQL and MariaDB, with the engine InnoDB. Which
// error means what is told by the text of the driver's error, "Error 1146
// (42S02): ...", as go-sql-driver/mysql has it: its type has no method to ask.
var MySQL = Dialect{
	name:  "mysql",
	probe: `SELECT k, v, rev FROM ` + Table + ` LIMIT 0`,
	create: `CREATE TABLE IF NOT EXISTS ` + Table + ` (
		k VARBINARY(512) NOT NULL PRIMARY KEY, v MEDIUMBLOB NOT NULL, rev BIGINT NOT NULL) ENGINE=InnoDB`,
	get: `SELECT v, rev FROM ` + Table + ` WHERE k = ? AND ` + mysqlFit,
	// IGNORE says how many rows were made, whatever the driver takes affected to
	// mean. It would let too long a value be cut, but values are bounded before.
	insert: `INSERT IGNORE INTO ` + Table + ` (k, v, rev) SELECT ?, ?, ? FROM DUAL WHERE ` + mysqlGuard,
	update: `UPDATE ` + Table + ` SET v = ?, rev = ? WHERE k = ? AND rev = ? AND ` + mysqlGuard,
	list:   `SELECT k, v, rev FROM ` + Table + ` WHERE k >= ? AND k < ? AND ` + mysqlFit + ` ORDER BY k`,

	swap: swapMySQL,
	clock: func(ctx context.Context, s *Store, conn *sql.Conn) (int64, error) {
		seen, err := vetMySQL(ctx, s, conn)
		return seen.micros, err
	},
	fit: func(ctx context.Context, s *Store, conn *sql.Conn) error {
		_, err := vetMySQL(ctx, s, conn)
		return err
	},
	missing:  func(err error) bool { return mysqlCode(err) == 1146 },
	undone:   func(err error) bool { return mysqlCode(err) == 1213 }, // a deadlock; in a cluster, a race lost to another member
	classify: classifyMySQL,
	examine:  examineMySQL,
}

// mysqlCode returns the number in err, or 0.
func mysqlCode(err error) int {
	for ; err != nil; err = errors.Unwrap(err) {
		var code int
		if n, scanErr := fmt.Sscanf(err.Error(), "Error %d", &code); n == 1 && scanErr == nil {
			return code
		}
	}
	return 0
}

// classifyMySQL tells the numbers of
// https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html apart.
func classifyMySQL(err error) (hint string, kind error) {
	switch mysqlCode(err) {
	case 0:
		return unanswered(err)
	case 1044, 1045, 1698, 1130, 1251:
		return "check user, password, and from which hosts it may come", store.ErrRefused
	case 1046, 1049:
		return "there is no such database: make it, or name another", store.ErrRefused
	case 1142, 1143, 1227, 1370:
		return "the account needs SELECT, INSERT and UPDATE on " + Table + ", and CREATE if the table is to be made", store.ErrRefused
	case 1290, 1792, 1836, 1223:
		return "it is a replica, or read-only: name the primary", store.ErrRefused
	case 1054, 1366, 1264, 1406, 1347, 1356:
		return "the table " + Table + " is not one of Firn's: rename it, or name another database", store.ErrRefused
	case 1021, 1114, 3675:
		return "free space on its disk", store.ErrUnavailable
	case 1040, 1203, 1226:
		return "it has no connection left: raise max_connections, or close some", store.ErrUnavailable
	case 1053, 1077, 1079, 3169:
		return "it is shutting down: try again", store.ErrUnavailable
	case 1020, 1205, 1213, 1317, 1969, 3024, 1158, 1159, 1160, 1161, 1152, 1184, 1047, 1927, 3101, 4031:
		return "", store.ErrUnavailable // locks, time-outs, lost connections, a cluster without quorum
	default:
		return "", nil
	}
}

// mysqlNames has the names that MySQL gave its settings later, as they were before.
var mysqlNames = strings.NewReplacer("tx_isolation", "transaction_isolation", "_source", "_master", "_replica_", "_slave_")

// mysqlPairs returns what a statement lists by name, whatever the version calls it.
func mysqlPairs(ctx context.Context, conn *sql.Conn, statement string) (map[string]string, error) {
	pairs := map[string]string{}
	rows, err := conn.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		pairs[mysqlNames.Replace(strings.ToLower(name))] = value
	}
	return pairs, errors.Join(rows.Err(), rows.Close())
}

func examineMySQL(ctx context.Context, conn *sql.Conn) ([]store.Finding, error) {
	variables, err := mysqlPairs(ctx, conn, `SHOW SESSION VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'sync_binlog',
		'log_bin', 'read_only', 'transaction_isolation', 'tx_isolation', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled',
		'rpl_semi_sync_master_wait_for_slave_count', 'rpl_semi_sync_source_wait_for_replica_count')`)
	if err != nil {
		return nil, err
	}
	var engine string
	if err := conn.QueryRowContext(ctx, `SELECT COALESCE(engine, '') FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?`, Table).
		Scan(&engine); err != nil {
		return nil, err
	}
	may, err := mysqlMay(ctx, conn)
	if err != nil {
		return nil, err
	}
	replicas, err := mysqlReplicas(ctx, conn, variables, may["PROCESS"])
	if err != nil {
		return nil, err
	}
	flush, binlog := variables["innodb_flush_log_at_trx_commit"], variables["sync_binlog"]
	says := "engine " + engine + ", innodb_flush_log_at_trx_commit " + flush
	durable := engine == "InnoDB" && flush == "1"
	if variables["log_bin"] == "ON" {
		says += ", sync_binlog " + binlog
		durable = durable && binlog == "1"
	}
	return []store.Finding{
		durability(durable, says, "set engine InnoDB, innodb_flush_log_at_trx_commit 1 and sync_binlog 1, or use a strict pool"),
		isolated(strings.ToLower(strings.ReplaceAll(variables["transaction_isolation"], "-", " "))),
		privileges(may["SELECT"], may["INSERT"], may["UPDATE"]),
		primary(variables["read_only"] == "ON"),
		replicas,
	}, nil
}

// mysqlMay asks which of what Firn needs the account was granted, where it
// tells: for the table, its database or everything.
func mysqlMay(ctx context.Context, conn *sql.Conn) (map[string]bool, error) {
	may := map[string]bool{}
	rows, err := conn.QueryContext(ctx, `SELECT privilege_type FROM information_schema.user_privileges
		UNION SELECT privilege_type FROM information_schema.schema_privileges WHERE DATABASE() LIKE table_schema
		UNION SELECT privilege_type FROM information_schema.table_privileges WHERE table_schema = DATABASE() AND table_name = ?`, Table)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var privilege string
		if err := rows.Scan(&privilege); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		may[privilege] = true
	}
	return may, errors.Join(rows.Err(), rows.Close())
}

// mysqlReplicas counts the replicas, of which MariaDB tells everybody, and those
// that acknowledge writes.
func mysqlReplicas(ctx context.Context, conn *sql.Conn, variables map[string]string, process bool) (store.Finding, error) {
	status, err := mysqlPairs(ctx, conn, `SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Rpl_semi_sync_master_status',
		'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_clients', 'Rpl_semi_sync_source_clients')`)
	if err != nil {
		return store.Finding{}, err
	}
	r := replicas{setting: "semi-synchronous replication", advice: "turn on semi-synchronous replication, here and on each of them"}
	connected, told := status["slaves_connected"]
	switch {
	case told:
		r.all, err = strconv.Atoi(connected)
	case !process:
		return store.Finding{Subject: "replicas", Verdict: store.Doubtful, Says: "not told", Advice: "grant PROCESS to have them counted"}, nil
	default:
		err = conn.QueryRowContext(ctx, `SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'`).Scan(&r.all)
	}
	if err != nil {
		return store.Finding{}, err
	}
	r.behind = r.all
	if variables["rpl_semi_sync_master_enabled"] == "ON" {
		r.waits = 1
		if n, err := strconv.Atoi(variables["rpl_semi_sync_master_wait_for_slave_count"]); err == nil {
			r.waits = n
		}
		if n, err := strconv.Atoi(status["rpl_semi_sync_master_clients"]); err == nil && status["rpl_semi_sync_master_status"] == "ON" {
			r.behind = max(0, r.all-n)
		}
	}
	return r.finding(), nil
}
