package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
)

// A server's settings can be changed while it runs, and count for the sessions that come. So
// each statement carries a guard. A read finds nothing on a session that does not commit
// by itself, which would show the same old state for ever, or that reads what is not
// committed. A write changes nothing there, nor on a session that does not know the life of
// its server yet: that is in a variable of the session, set by the one statement that looks
// at all of this, [mysqlVet]. Whoever finds or changes nothing runs that, and a write then
// once more. So a write remains one round trip, and what it says holds for the very
// session it ran on, behind a proxy that hands sessions on too.
const (
	// MariaDB executes the comments that begin with M!, MySQL those that begin
	// with a version of its own.
	mysqlIsolation = `/*M! @@tx_isolation */ /*!50720 @@transaction_isolation */`
	mysqlFormat    = `/*M! @@binlog_format */ /*!50720 (SELECT MAX(variable_value) FROM performance_schema.global_variables WHERE variable_name = 'binlog_format') */`
	mysqlStatus    = `/*M! information_schema */ /*!50720 performance_schema */.global_status`

	// A transaction that others who share the connections left open is told by MariaDB alone.
	// What is converted from one charset to another on its way is another key, or another value.
	mysqlFit = `@@autocommit = 1 AND ` + mysqlIsolation + ` <> 'READ-UNCOMMITTED' AND @@character_set_client = @@character_set_connection /*M! AND @@in_transaction = 0 */`
	// A write that is left out of the log leaves alone what MariaDB says that the session logged last.
	mysqlGuard = mysqlFit + ` AND @firn_life = ? /*M! AND (@firn_logged := @@last_gtid) IS NOT NULL */`

	// A member of a Galera cluster keeps to itself what is written while this is off, and what it would not
	// log. Only builds with Galera know these settings.
	mysqlGalera    = `galera `
	mysqlReplicate = ` AND @@wsrep_on AND @@global.wsrep_on /*M!100402 AND (@firn_given := WSREP_LAST_WRITTEN_GTID()) IS NOT NULL */`
	mysqlAlone     = `SELECT /*M!100402 WSREP_LAST_WRITTEN_GTID() = @firn_given OR */ FALSE`

	// The life of a server is who it is and when it started. Uptime counts from the
	// start to the same moment that UNIX_TIMESTAMP() gives, so their difference
	// is the same for all sessions, also after the clock was set. The
	// members of a Galera cluster have one life: what one acknowledged, all have.
	// There are no empty strings in it, which may be NULL to MariaDB (sql_mode). The time is in
	// UTC: that of the session's zone comes twice in the hour when summer time ends.
	mysqlVet = `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), unfit, @firn_life,
		@firn_life := CASE WHEN unfit = 'fit' THEN
			CASE WHEN CHAR_LENGTH(cluster) > 0 THEN CONCAT('` + mysqlGalera + `', cluster)
			ELSE CONCAT_WS(' ', @@hostname, @@port, @@server_id, /*!50720 @@server_uuid, */ CAST(UNIX_TIMESTAMP() AS SIGNED) - uptime) END END,
		/*M! @@rpl_semi_sync_master_enabled */ /*!50720 (SELECT COALESCE(MAX(variable_value = 'ON'), 0) FROM performance_schema.global_variables
			WHERE variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')) */,
		COALESCE(semi = 'ON', 0), COALESCE(missed, 0), /*M! @@last_gtid <=> @firn_logged */ /*!50720 FALSE */
	FROM (SELECT CASE WHEN @@autocommit = 0 THEN 'autocommit' WHEN ` + mysqlIsolation + ` = 'READ-UNCOMMITTED' THEN 'isolation'
			WHEN @@character_set_client <> @@character_set_connection THEN 'charset'
			/*M! WHEN @@in_transaction THEN 'transaction'
			WHEN CHAR_LENGTH(MAX(CASE WHEN variable_name = 'wsrep_cluster_state_uuid' THEN variable_value END)) > 0 AND 'OFF' IN (
				(SELECT variable_value FROM information_schema.session_variables WHERE variable_name = 'wsrep_on'),
				(SELECT variable_value FROM information_schema.global_variables WHERE variable_name = 'wsrep_on')) THEN 'cluster' */
			WHEN @@log_bin AND NOT @@sql_log_bin THEN 'log' WHEN @@log_bin AND ` + mysqlFormat + ` = 'STATEMENT' THEN 'format' ELSE 'fit' END AS unfit,
		MAX(CASE WHEN variable_name = 'Uptime' THEN CAST(variable_value AS SIGNED) END) AS uptime,
		MAX(CASE WHEN variable_name = 'wsrep_cluster_state_uuid' THEN variable_value END) AS cluster,
		MAX(CASE WHEN variable_name LIKE '%_status' THEN variable_value END) AS semi,
		MAX(CASE WHEN variable_name LIKE '%_no_tx' THEN CAST(variable_value AS SIGNED) END) AS missed
		FROM ` + mysqlStatus + ` WHERE variable_name IN ('Uptime', 'wsrep_cluster_state_uuid', 'Rpl_semi_sync_master_status',
			'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_no_tx', 'Rpl_semi_sync_source_no_tx')) AS s`
)

// mysqlUnfit says what is wrong with a session that mysqlVet calls unfit, and a way out.
var mysqlUnfit = map[string]string{
	"autocommit":  "autocommit is off, so that no write would be committed: set autocommit=1 for the driver or the server",
	"isolation":   "transaction_isolation is READ-UNCOMMITTED, which shows writes that may yet be undone: set READ-COMMITTED or above",
	"charset":     "character_set_connection is another than character_set_client, so that keys and values would be converted: set charset=utf8mb4 for the driver",
	"transaction": "a transaction was left open on it, so that no write would be committed: end it, or give the store connections of its own",
	"cluster":     "wsrep_on is off, so that no other member of the cluster would have a write: turn it on",
	"log":         "sql_log_bin is off, so that no write would reach a replica: set sql_log_bin=1",
	"format":      "binlog_format is STATEMENT, by which a replica runs a write under its own settings and may skip it: set ROW or MIXED",
}

// A mysqlSession is what [mysqlVet] returns.
type mysqlSession struct {
	at     time.Time // when it was asked, by our clock
	micros int64     // the server's clock
	before string    // the life that the session knew already
	life   string
	semi   bool  // its server waits for a replica, as it is set
	waits  bool  // and as it is: it gives up after a while
	missed int64 // commits that no replica acknowledged
	silent bool  // its latest write is not in the log; MySQL does not tell
}

// vetMySQL looks at a session, and lets it be used for writes if it is fit.
func vetMySQL(ctx context.Context, s *Store, conn *sql.Conn) (seen mysqlSession, err error) {
	var unfit string
	var before, life sql.NullString
	seen.at = time.Now()
	if err := conn.QueryRowContext(ctx, mysqlVet).Scan(&seen.micros, &unfit, &before, &life,
		&seen.semi, &seen.waits, &seen.missed, &seen.silent); err != nil {
		return seen, err
	}
	if unfit != "fit" {
		return seen, fmt.Errorf("%w: %s", errUnfit, mysqlUnfit[unfit])
	}
	seen.before, seen.life = before.String, life.String
	s.mysql.Store(&seen)
	return seen, nil
}

// semiLasts is how long a look is good that found no semi-synchronous replication, which
// can be turned on while the server runs. A write that no replica acknowledged returns only
// after the server's time-out, 10 s by default; by then the look is too old, and is repeated.
const semiLasts = time.Second

// swapMySQL runs a write for the life that was seen last. If it changes nothing, it looks
// why: unless the session had that life, it runs the write for the one that it has.
func swapMySQL(ctx context.Context, s *Store, conn *sql.Conn, statement string, args []any) (life string, err error) {
	seen := *s.mysql.Load()
	for try := 1; ; try++ {
		guarded := statement
		if strings.HasPrefix(seen.life, mysqlGalera) {
			guarded += mysqlReplicate
		}
		n, err := exec(ctx, conn, guarded, append(args[:len(args):len(args)], seen.life)...)
		if err != nil {
			return "", err
		}
		if n > 0 {
			break
		}
		now, err := vetMySQL(ctx, s, conn)
		switch {
		case err != nil:
			return "", err
		case now.before == seen.life:
			return "", store.ErrConflict
		case try == undoneTries:
			return "", fmt.Errorf("%w: each statement runs on another session: name the server, or a proxy that keeps sessions", store.ErrUnavailable)
		}
		seen = now
	}
	if seen.semi || time.Since(seen.at) > semiLasts {
		err = acknowledged(ctx, s, conn, seen)
	}
	if err == nil && strings.HasPrefix(seen.life, mysqlGalera) {
		err = replicated(ctx, conn)
	}
	return seen.life, err
}

// acknowledged asks whether a replica has a write. The server waits for one, but
// not for ever: after its time-out, or when the statement is killed, it says yes
// all the same. It counts such commits before it answers. One of another
// writer makes this one unconfirmed as well, which does no harm.
func acknowledged(ctx context.Context, s *Store, conn *sql.Conn, before mysqlSession) error {
	now, err := vetMySQL(ctx, s, conn)
	switch {
	case err != nil:
		return unconfirmed("whether a replica has it could not be asked: %s", err.Error())
	case now.life != before.life:
		return unconfirmed("it is another server now")
	case (before.semi || now.semi) && now.silent:
		return unconfirmed("it is not in the binary log: have binlog_do_db and binlog_ignore_db let the database through")
	case (before.semi || now.semi) && (!now.waits || now.missed != before.missed):
		return unconfirmed("no replica acknowledged it within rpl_semi_sync_master_timeout: " +
			"start a replica with semi-synchronous replication, or turn that off on the primary")
	}
	return nil
}

// replicated asks whether the members of a Galera cluster have a write. A member replicates what it would log, and
// its settings may leave out a database, whether it has a log or not.
func replicated(ctx context.Context, conn *sql.Conn) error {
	var alone bool
	if err := conn.QueryRowContext(ctx, mysqlAlone).Scan(&alone); err != nil {
		return unconfirmed("whether the cluster has it could not be asked: %s", err.Error())
	}
	if alone {
		return unconfirmed("no other member of the cluster has it: have binlog_do_db and binlog_ignore_db let the database through")
	}
	return nil
}
