package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// A server's settings may change while it runs, and then apply to new sessions. So each statement has a
// guard, and finds or changes nothing on an unfit session: one without autocommit, which would show the
// same old state for ever, or one that reads uncommitted data. A write also changes nothing on a
// read-only server, whatever the account may do, and on a session that does not know the life of its
// server yet. The life is in a session variable, set by mysqlVet, which checks all of this, and which the
// store runs after a statement that finds or changes nothing, before it tries a write again. So a write
// remains one round trip, and its result holds for exactly its session, even behind a proxy that hands
// sessions on.
const (
	// MariaDB executes comments that begin with M!, MySQL those with a version of its own.
	mysqlIsolation = `/*M! @@tx_isolation */ /*!50720 @@transaction_isolation */`
	mysqlFormat    = `/*M! @@binlog_format */ /*!50720 (SELECT MAX(variable_value) FROM performance_schema.global_variables WHERE variable_name = 'binlog_format') */`
	mysqlStatus    = `/*M! information_schema */ /*!50720 performance_schema */.global_status`

	// A session must not convert keys and values between charsets. Only MariaDB shows that another user of
	// the connection left a transaction open.
	mysqlFit = `@@autocommit = 1 AND ` + mysqlIsolation + ` <> 'READ-UNCOMMITTED' AND @@character_set_client = @@character_set_connection /*M! AND @@in_transaction = 0 */`
	// If a session marks its events to be skipped, or logs them under another server's number, a replica
	// treats them as done without applying them, and acknowledges a later write.
	mysqlForeign = `(@@skip_replication OR @@server_id <> @@global.server_id)`
	// Read_only fences off a primary that was replaced, or is about to be: an administrator's account must
	// not write either. The setting is a number, or a word in newer versions.
	mysqlWritable = `CONCAT(@@global.read_only) IN ('0', 'OFF')`
	// Whether writes wait for a replica.
	mysqlSemi = `/*M! @@rpl_semi_sync_master_enabled */ /*!50720 (SELECT COALESCE(MAX(variable_value = 'ON'), 0) FROM performance_schema.global_variables
			WHERE variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')) */`
	// Replicas take writes by default, of which their primary knows nothing. One that receives another's writes with
	// semi-synchronous replication on, and waits for no replica itself, is no primary.
	// A member of a Galera cluster may receive other databases: its writes are replicated otherwise.
	mysqlReplica = `MAX(variable_name IN ('Rpl_semi_sync_slave_status', 'Rpl_semi_sync_replica_status') AND variable_value = 'ON') AND (` + mysqlSemi + `) = 0
		/*M! AND COALESCE(MAX(CASE WHEN variable_name = 'wsrep_cluster_state_uuid' THEN CHAR_LENGTH(variable_value) END), 0) = 0 */`
	// MariaDB shows the position a session logged last; it does not move if the log leaves a write out.
	mysqlGuard = mysqlFit + ` AND @firn_life = ? AND ` + mysqlWritable + ` /*M! AND NOT ` + mysqlForeign + ` AND (@firn_logged := @@last_gtid) IS NOT NULL */`

	// While these are off, or if its log leaves them out, a member of a Galera cluster does not replicate
	// writes; and others run statements under their own settings. Only builds with Galera know them.
	mysqlGalera    = `galera `
	mysqlReplicate = ` AND @@wsrep_on AND @@global.wsrep_on /*M! AND 'STATEMENT' NOT IN (@@binlog_format, @@wsrep_forced_binlog_format) */ /*M!100402 AND (@firn_given := WSREP_LAST_WRITTEN_GTID()) IS NOT NULL */`
	// A member without quorum would answer with what was true before.
	mysqlClean = ` AND NOT @@wsrep_dirty_reads`
	// The second column lists the members whose data belongs to the life that the third one names.
	mysqlCluster = `SELECT /*M!100402 WSREP_LAST_WRITTEN_GTID() = @firn_given OR */ FALSE, v, COALESCE(rev, 0)
		FROM (SELECT 1) AS one LEFT JOIN ` + Table + ` ON k = '` + membersKey + `'`

	// The life of a server is its identity and its start time: two containers may share a name and a
	// number, and start in one second, but each has its own hardware address, which ends a UUID of
	// MariaDB. Before it is a number that MariaDB makes of the milliseconds since the machine's boot when it
	// starts: a machine without a clock of its own may show the same second at each boot. Uptime counts to
	// the moment that UNIX_TIMESTAMP() returns, so their difference is the same for all sessions, even after
	// the clock was set. This guards the writes of a Galera cluster too; but its members share one life, see
	// lifeOfCluster. Empty strings are avoided, as sql_mode may make them NULL in MariaDB. The time is in UTC: a
	// local hour repeats when summer time ends.
	mysqlVet = `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), unfit, @firn_life,
		@firn_life := CASE WHEN unfit IN ('fit', 'read-only') THEN
			CONCAT_WS(' ', CASE WHEN CHAR_LENGTH(cluster) > 0 THEN CONCAT('` + mysqlGalera + `', cluster) END,
				@@hostname, @@port, @@server_id, /*!50720 @@server_uuid, */ /*M! RIGHT(UUID(), 17), */ CAST(UNIX_TIMESTAMP() AS SIGNED) - uptime) END,
		` + mysqlSemi + `,
		COALESCE(semi = 'ON', 0), COALESCE(missed, 0), COALESCE(acked, 0), CASE WHEN since <= 0 THEN -1 ELSE uptime - COALESCE(since, uptime) END, /*M! @@last_gtid <=> @firn_logged */ /*!50720 FALSE */
	FROM (SELECT CASE WHEN @@autocommit = 0 THEN 'autocommit' WHEN ` + mysqlIsolation + ` = 'READ-UNCOMMITTED' THEN 'isolation'
			WHEN @@character_set_client <> @@character_set_connection THEN 'charset'
			/*M! WHEN @@in_transaction THEN 'transaction'
			WHEN CHAR_LENGTH(MAX(CASE WHEN variable_name = 'wsrep_cluster_state_uuid' THEN variable_value END)) > 0 AND 'ON' = (
				SELECT variable_value FROM information_schema.session_variables WHERE variable_name = 'wsrep_dirty_reads') THEN 'dirty'
			WHEN CHAR_LENGTH(MAX(CASE WHEN variable_name = 'wsrep_cluster_state_uuid' THEN variable_value END)) > 0 AND 'OFF' IN (
				(SELECT variable_value FROM information_schema.session_variables WHERE variable_name = 'wsrep_on'),
				(SELECT variable_value FROM information_schema.global_variables WHERE variable_name = 'wsrep_on')) THEN 'cluster'
			WHEN CHAR_LENGTH(MAX(CASE WHEN variable_name = 'wsrep_cluster_state_uuid' THEN variable_value END)) > 0 AND 'STATEMENT' IN (@@binlog_format,
				(SELECT variable_value FROM information_schema.global_variables WHERE variable_name = 'wsrep_forced_binlog_format')) THEN 'format' */
			/*M! WHEN ` + mysqlForeign + ` THEN 'foreign' */
			WHEN @@log_bin AND NOT @@sql_log_bin THEN 'log' WHEN @@log_bin AND ` + mysqlFormat + ` = 'STATEMENT' THEN 'format'
			WHEN NOT (` + mysqlWritable + `) THEN 'read-only' WHEN ` + mysqlReplica + ` THEN 'replica' ELSE 'fit' END AS unfit,
		MAX(CASE WHEN variable_name = 'Uptime' THEN CAST(variable_value AS SIGNED) END) AS uptime,
		MAX(CASE WHEN variable_name = 'Uptime_since_flush_status' THEN CAST(variable_value AS SIGNED) END) AS since,
		MAX(CASE WHEN variable_name = 'wsrep_cluster_state_uuid' THEN variable_value END) AS cluster,
		MAX(CASE WHEN variable_name IN ('Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status') THEN variable_value END) AS semi,
		MAX(CASE WHEN variable_name LIKE '%_no_tx' THEN CAST(variable_value AS SIGNED) END) AS missed,
		MAX(CASE WHEN variable_name LIKE '%_yes_tx' THEN CAST(variable_value AS SIGNED) END) AS acked
		FROM ` + mysqlStatus + ` WHERE variable_name IN ('Uptime', 'Uptime_since_flush_status', 'wsrep_cluster_state_uuid', 'Rpl_semi_sync_master_status',
			'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_no_tx', 'Rpl_semi_sync_source_no_tx',
			'Rpl_semi_sync_master_yes_tx', 'Rpl_semi_sync_source_yes_tx', 'Rpl_semi_sync_slave_status', 'Rpl_semi_sync_replica_status')) AS s`
)

// mysqlUnfit explains why mysqlVet rejects a session.
var mysqlUnfit = map[string]string{
	"autocommit":  "autocommit is off, so that no write would be committed: set autocommit=1 for the driver or the server",
	"isolation":   "transaction_isolation is READ-UNCOMMITTED, which shows writes that may yet be undone: set READ-COMMITTED or above",
	"charset":     "character_set_connection is another than character_set_client, so that keys and values would be converted: set charset=utf8mb4 for the driver",
	"transaction": "a transaction was left open on it, so that no write would be committed: end it, or give the store connections of its own",
	"cluster":     "wsrep_on is off, so that no other member of the cluster would have a write: turn it on",
	"dirty":       "wsrep_dirty_reads is on, so that a member without quorum would show what was true before: turn it off",
	"foreign":     "skip_replication is on, or server_id is not the server's own, so that a replica leaves out its writes: set neither",
	"replica":     "it receives another server's writes with semi-synchronous replication, and its own wait for no replica: name the primary. If it is the primary now: STOP REPLICA IO_THREAD, wait until it has applied all, STOP REPLICA, RESET REPLICA ALL (SLAVE in older versions). If it only receives other databases: turn rpl_semi_sync_slave_enabled off and restart its replication, or turn rpl_semi_sync_master_enabled on",
	"log":         "sql_log_bin is off, so that no write would reach a replica: set sql_log_bin=1",
	"format":      "binlog_format or wsrep_forced_binlog_format is STATEMENT, by which a replica runs a write under its own settings and may skip it: set ROW or MIXED",
}

// A mysqlSession is the result of [mysqlVet].
type mysqlSession struct {
	at     time.Time // of the query, by our clock
	micros int64     // the server's clock
	before string    // the life that the session knew already
	life   string    // of the server; a cluster's members have one each
	semi   bool      // its server is configured to wait for a replica
	waits  bool      // and it does wait: it gives up after a time-out
	missed int64     // commits that no replica acknowledged
	acked  int64     // groups of commits that a replica acknowledged
	since  int64     // the second of the server's uptime in which it began to count; -1: the present one; always 0 in builds without that count
	silent bool      // its latest write is not in the log; MySQL does not show this
	reads  bool      // its server is read-only and refuses our writes
}

// readMySQL has a read find nothing on an unfit session of a Galera cluster.
func readMySQL(s *Store, statement string) string {
	if seen := s.mysql.Load(); seen != nil && strings.HasPrefix(seen.life, mysqlGalera) {
		return strings.Replace(statement, mysqlWritable, mysqlWritable+mysqlClean, 1)
	}
	return statement
}

// vetMySQL checks a session, and admits writes if it is fit.
func vetMySQL(ctx context.Context, s *Store, conn *sql.Conn) (mysqlSession, error) {
	var unfit string
	var before, life sql.NullString
	seen := mysqlSession{at: time.Now()}
	if err := conn.QueryRowContext(ctx, mysqlVet).Scan(&seen.micros, &unfit, &before, &life,
		&seen.semi, &seen.waits, &seen.missed, &seen.acked, &seen.since, &seen.silent); err != nil {
		return seen, err
	}
	seen.reads = unfit == "read-only"
	if unfit != "fit" && !seen.reads {
		return seen, fmt.Errorf("%w: %s", errUnfit, mysqlUnfit[unfit])
	}
	seen.before, seen.life = before.String, life.String
	s.mysql.Store(&seen)
	return seen, nil
}

// semiLasts is how long a check that found no semi-synchronous replication stays valid; it may be turned
// on meanwhile. A write that no replica acknowledged returns only after the server's time-out, 10 s by
// default; by then the check has expired.
const semiLasts = time.Second

// swapMySQL makes a write for the life seen last, and tries again if the session has another.
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
		case now.reads:
			return "", fmt.Errorf("%w: %s; this account could write all the same", errUnfit, primaryHint)
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
	life = seen.life
	if err == nil && strings.HasPrefix(life, mysqlGalera) {
		life, err = s.lifeOfCluster(ctx, conn, life)
	}
	if err == nil && statement == s.dialect.insert {
		err = s.single(ctx, conn, args[0])
	}
	return life, err
}

// single checks that a new key exists exactly once. If a table is partitioned by another column, its
// primary key includes that, so two writers may each insert the key: the second then finds two rows. And
// the engine BLACKHOLE reports an insert although it discards the row.
func (s *Store) single(ctx context.Context, conn *sql.Conn, key any) error {
	if _, err := backend.First(s.registers(ctx, conn, s.dialect.get, key)); err != nil {
		return unconfirmed("its key was not seen to be there once: %s", err.Error())
	}
	return nil
}

// acknowledged checks whether a replica has a write. The server waits for one, but still reports success
// after its time-out, or when the statement is killed. It counts such commits, and the others, before it
// answers. Another writer's missed commit makes this one unconfirmed too, which is harmless; so does
// FLUSH STATUS, after which the counts begin again: others may have brought them to where they were. Only
// counts that began in the same past second are compared.
func acknowledged(ctx context.Context, s *Store, conn *sql.Conn, before mysqlSession) error {
	now, err := vetMySQL(ctx, s, conn)
	switch {
	case err != nil:
		return unconfirmed("whether a replica has it could not be asked: %s", err.Error())
	case now.life != before.life:
		return unconfirmed("it is another server now")
	case (before.semi || now.semi) && now.silent:
		return unconfirmed("it is not in the binary log: have binlog_do_db and binlog_ignore_db let the database through")
	case (before.semi || now.semi) && (!now.waits || before.since < 0 || now.since != before.since || now.missed != before.missed || now.acked <= before.acked):
		return unconfirmed("no replica acknowledged it within rpl_semi_sync_master_timeout, or FLUSH STATUS reset the counts that show it: " +
			"start a replica with semi-synchronous replication, or turn that off on the primary")
	}
	return nil
}

// membersKey is no key that a caller may have.
const membersKey = "\tmembers"

// maxMembers bounds how many members of a cluster share a life. One that is not among the latest begins
// another life.
const maxMembers = 32

// lifeOfCluster checks whether the other members of a Galera cluster have a write, and returns the life of
// the cluster. A member sends what it would log, and its settings may leave out a database even if it keeps
// no log.
//
// A cluster's own id comes back with a copy of its data, and stays when all members have stopped and one
// with older data begins the cluster again. But then no member has run since. So a register lists the
// members by their starts, and its revision names the life: a member that is not in the list adds itself,
// and so begins another life. That also happens when a member joins a cluster that runs: nothing that a
// session sees tells the two apart.
func (s *Store) lifeOfCluster(ctx context.Context, conn *sql.Conn, member string) (string, error) {
	for range undoneTries {
		var alone bool
		var list []byte
		var revision store.Revision
		if err := conn.QueryRowContext(ctx, s.dialect.cluster).Scan(&alone, &list, &revision); err != nil {
			return "", unconfirmed("whether the cluster has it could not be asked: %s", err.Error())
		}
		if alone {
			return "", unconfirmed("no other member of the cluster has it: have binlog_do_db and binlog_ignore_db let the database through")
		}
		members := strings.Fields(string(list))
		if slices.Contains(members, digest(member)) {
			return mysqlGalera + backend.Digits(revision), nil
		}
		members = append(members[max(0, len(members)-maxMembers+1):], digest(member))
		if _, err := backend.Write("members", []byte(strings.Join(members, " ")), func(e store.Entry) (string, error) {
			statement, args := s.dialect.insert, []any{membersKey, e.Value, e.Revision}
			if revision != 0 {
				statement, args = s.dialect.update, []any{e.Value, e.Revision, membersKey, revision}
			}
			_, err := exec(ctx, conn, statement+mysqlReplicate, append(args, member)...)
			return "", err
		}); err != nil {
			return "", unconfirmed("that this member of the cluster was started could not be noted: %s", err.Error())
		}
	}
	return "", unconfirmed("many members of the cluster were started at the same time")
}

// digest returns text without spaces for the server of a session.
func digest(life string) string {
	sum := sha256.Sum256([]byte(life))
	return hex.EncodeToString(sum[:12])
}

// serverOf returns the name of a store: the members of a cluster are one.
func serverOf(life string) string {
	if of, ok := strings.CutPrefix(life, mysqlGalera); ok {
		of, _, _ = strings.Cut(of, " ")
		return mysqlGalera + of
	}
	return life
}
