package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// answeringDB is a database that answers each statement with the rows for its query.
type answeringDB struct {
	answers
	life string
	rows func(statement string) rows
}

func (d answeringDB) Connect(context.Context) (driver.Conn, error) { return d, nil }

func (d answeringDB) QueryContext(_ context.Context, statement string, _ []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(statement, "@firn_life :=") {
		return &rows{{int64(0), "fit", d.life, d.life, false, false, int64(0), int64(0), int64(0), false}}, nil
	}
	if strings.Contains(statement, "clock_timestamp()") {
		return &rows{{int64(0), d.life}}, nil
	}
	r := d.rows(statement)
	return &r, nil
}

// rows can be read once.
type rows []oneRow

func (r *rows) Columns() []string {
	if len(*r) == 0 {
		return noRows{}.Columns()
	}
	return (*r)[0].Columns()
}
func (r *rows) Close() error { return nil }
func (r *rows) Next(into []driver.Value) error {
	if len(*r) == 0 {
		return io.EOF
	}
	copy(into, (*r)[0])
	*r = (*r)[1:]
	return nil
}

// found returns the finding of an examination about a subject.
func found(t *testing.T, dialect sqlstore.Dialect, subject string, connector driver.Connector) store.Finding {
	t.Helper()
	s, err := sqlstore.Open(context.Background(), sql.OpenDB(connector), dialect)
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Traits().Examine(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Subject == subject {
			return f
		}
	}
	t.Fatalf("nothing is said of %s", subject)
	return store.Finding{}
}

// Tests cannot run all the versions that undo their latest confirmed writes, or confirm too early,
// when they start after a crash.
func TestAServerThatForgetsInACrashIsNotGood(t *testing.T) {
	for _, test := range []struct {
		version, name, value string
		verdict              store.Verdict
	}{
		{"10.11.8-MariaDB-log", "rpl_semi_sync_slave_enabled", "ON", store.Bad},
		{"10.11.8-MariaDB-log", "rpl_semi_sync_slave_enabled", "OFF", store.Good},
		{"10.11.9-MariaDB", "rpl_semi_sync_slave_enabled", "ON", store.Good},
		{"10.6.18-MariaDB", "rpl_semi_sync_slave_enabled", "ON", store.Bad},
		{"10.6.19-MariaDB", "rpl_semi_sync_slave_enabled", "ON", store.Good},
		{"10.5.29-MariaDB", "rpl_semi_sync_slave_enabled", "ON", store.Good},
		{"10.10.7-MariaDB", "rpl_semi_sync_slave_enabled", "ON", store.Bad},
		{"11.4.2-MariaDB", "rpl_semi_sync_slave_enabled", "ON", store.Bad},
		{"11.8.2-MariaDB", "rpl_semi_sync_slave_enabled", "ON", store.Good},
		{"9.7.4", "rpl_semi_sync_replica_enabled", "ON", store.Good},
		{"10.11.19-MariaDB", "Rpl_status", "IDLE_SLAVE", store.Bad},
		{"10.11.19-MariaDB", "Rpl_status", "AUTH_MASTER", store.Good},
		{"10.11.19-MariaDB", "innodb_flush_method", "O_DIRECT", store.Good},
		{"10.11.19-MariaDB", "innodb_flush_method", "nosync", store.Bad},
		{"9.7.4", "innodb_flush_method", "littlesync", store.Bad},
		{"9.7.4", "innodb_flush_method", "O_DIRECT_NO_FSYNC", store.Bad},
		{"9.7.4", "innodb_flush_method", "O_DIRECT", store.Good},
		{"10.11.19-MariaDB", "innodb_doublewrite", "ON", store.Good},
		{"10.11.19-MariaDB", "innodb_doublewrite", "OFF", store.Bad},
		{"11.8.9-MariaDB", "innodb_doublewrite", "FAST", store.Bad},
		{"9.7.4", "innodb_doublewrite", "DETECT_AND_RECOVER", store.Good},
		{"9.7.4", "innodb_doublewrite", "DETECT_ONLY", store.Bad},
		{"9.7.4", "innodb_doublewrite", "FALSE", store.Bad},
		{"9.7.4", "Innodb_redo_log_enabled", "ON", store.Good},
		{"9.7.4", "Innodb_redo_log_enabled", "OFF", store.Bad},
	} {
		f := found(t, sqlstore.MySQL, "durability", answeringDB{rows: func(statement string) rows {
			switch {
			case strings.Contains(statement, "'engine'"):
				return rows{{"engine", "InnoDB"}}
			case strings.Contains(statement, "SHOW SESSION VARIABLES"):
				return rows{{"version", test.version}, {"log_bin", "ON"}, {"sync_binlog", "1"}, {"innodb_flush_log_at_trx_commit", "1"}, {test.name, test.value}}
			}
			return nil
		}})
		if f.Verdict != test.verdict || (f.Advice == "") != (f.Verdict == store.Good) {
			t.Errorf("%s with %s %s: %v, %v", test.version, test.name, test.value, f.Verdict, f)
		}
	}
	for version, verdict := range map[int64]store.Verdict{
		90_620: store.Bad, 100_006: store.Bad, 100_007: store.Good, 110_001: store.Bad, 110_002: store.Good,
		140_003: store.Bad, 140_004: store.Good, 150_000: store.Good,
	} {
		if f := found(t, sqlstore.Postgres, "durability", postgres("life", version, 1)); f.Verdict != verdict || (f.Advice == "") != (verdict == store.Good) {
			t.Errorf("version %d: %v, %v", version, f.Verdict, f)
		}
	}
	for version, verdict := range map[int64]store.Verdict{
		100_023: store.Doubtful, 130_020: store.Doubtful, 130_021: store.Good, 150_012: store.Doubtful, 150_013: store.Good,
		170_004: store.Doubtful, 170_005: store.Good, 180_000: store.Good,
	} {
		for waits, want := range map[int64]store.Verdict{0: store.Bad, 1: verdict} {
			if f := found(t, sqlstore.Postgres, "replicas", postgres("life", version, waits)); f.Verdict != want {
				t.Errorf("version %d, which waits for %d: %v, %v", version, waits, f.Verdict, f)
			}
		}
	}
}

// The texts that only servers show which tests cannot run.
func TestWhatIsSaidOfOtherVersions(t *testing.T) {
	facts := func(variables, status rows) answeringDB {
		return answeringDB{rows: func(statement string) rows {
			switch {
			case strings.Contains(statement, "'engine'"):
				return rows{{"engine", "InnoDB"}}
			case strings.Contains(statement, "SHOW SESSION VARIABLES"):
				return append(rows{{"innodb_flush_log_at_trx_commit", "1"}, {"sync_binlog", "1"}, {"log_bin", "ON"}}, variables...)
			case strings.Contains(statement, "SHOW GLOBAL STATUS"):
				return status
			}
			return nil
		}}
	}
	for _, test := range []struct {
		dialect sqlstore.Dialect
		server  answeringDB
		want    string
	}{
		{sqlstore.MySQL, facts(nil, rows{{"Innodb_redo_log_enabled", "OFF"}}), "durability: the redo log is disabled: a crash forgets the workers taken last: ALTER INSTANCE ENABLE INNODB REDO_LOG"},
		{sqlstore.MySQL, facts(nil, nil), "replicas: unknown: grant PROCESS to have them counted"},
		{sqlstore.MySQL, facts(nil, nil), "role: whether it applies the writes of another server too is unknown: grant SELECT on performance_schema.replication_connection_status to have that checked"},
		{sqlstore.MySQL, facts(rows{{"version", "10.11.5-MariaDB"}, {"rpl_semi_sync_slave_enabled", "ON"}}, nil),
			"durability: rpl_semi_sync_slave_enabled ON: a crash forgets the workers taken last: update MariaDB, or leave that off on the primary: at its start after a crash it would undo what it confirmed last"},
		{sqlstore.Postgres, postgres("life", 140_003, 1),
			"durability: PostgreSQL 14.3: REINDEX and CREATE INDEX CONCURRENTLY make indexes without some rows: a crash forgets the workers taken last: update PostgreSQL to 14.4 or later, and then REINDEX TABLE firn_registers"},
		{sqlstore.Postgres, postgres("life", 100_006, 1),
			"durability: this version syncs a file again that could not be synced, and takes that for success: a crash forgets the workers taken last: update PostgreSQL to 10.7, 11.2 or later"},
		{sqlstore.Postgres, postgres("life", 150_004, 1),
			"replicas: 1, which have a write before it is confirmed (synchronous_standby_names); but in this version not in the first moments after a restart: update PostgreSQL to 17.5, 16.9, 15.13, 14.18, 13.21 or later"},
	} {
		subject, _, _ := strings.Cut(test.want, ":")
		if f := found(t, test.dialect, subject, test.server); f.String() != test.want || f.Verdict == store.Good {
			t.Errorf("%v: %v, not %s", f.Verdict, f, test.want)
		}
	}
}

// postgres has one standby.
func postgres(life string, version, waits int64) answeringDB {
	return answeringDB{life: life, rows: func(statement string) rows {
		switch {
		case strings.Contains(statement, "server_version_num"):
			return rows{{"", "", false, false, "", version, false, waits, false, int64(1), int64(0), 1 - waits, false}}
		case strings.Contains(statement, "here AS"):
			return rows{{"public", "public"}}
		}
		return nil
	}}
}

// As with a host name that has the addresses of two servers, or a load balancer.
func TestConnectionsThatLeadToSeveralServersAreBad(t *testing.T) {
	for _, test := range []struct {
		dialect sqlstore.Dialect
		server  func(life string) answeringDB
	}{
		{sqlstore.MySQL, func(life string) answeringDB {
			return answeringDB{life: life, rows: func(statement string) rows {
				if strings.Contains(statement, "SHOW GLOBAL STATUS") {
					return rows{{"Slaves_running", "0"}}
				}
				return nil
			}}
		}},
		{sqlstore.Postgres, func(life string) answeringDB { return postgres(life, 170_005, 1) }},
	} {
		for lives, want := range map[string]store.Verdict{"aaaaaaaa": store.Good, "abababab": store.Bad, "aaabbbbb": store.Bad} {
			var left []driver.Connector
			for _, life := range lives {
				left = append(left, test.server(string(life)))
			}
			f := found(t, test.dialect, "role", moved{scripted{}, &left})
			if f.Verdict != want || strings.Contains(f.Says, "2 servers") != (want == store.Bad) {
				t.Errorf("%v, servers %s: %v, %v", test.dialect, lives, f.Verdict, f)
			}
		}
	}
}
