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

// told is a database that answers each statement with the rows that have to do with it.
type told struct {
	answers
	rows func(statement string) rows
}

func (d told) Connect(context.Context) (driver.Conn, error) { return d, nil }

func (d told) QueryContext(_ context.Context, statement string, _ []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(statement, "@firn_life :=") {
		return &rows{{int64(0), "fit", "life", "life", false, false, int64(0), false}}, nil
	}
	r := d.rows(statement)
	return &r, nil
}

// rows are read once.
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

// found is what an examination of a database says of a subject.
func found(t *testing.T, dialect sqlstore.Dialect, subject string, answer func(statement string) rows) store.Finding {
	t.Helper()
	s, err := sqlstore.New(context.Background(), sql.OpenDB(told{rows: answer}), dialect)
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.(store.Examined).Examine(context.Background())
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

// Versions that undo what they confirmed last, or confirm it too early, when they start after a crash
// cannot all be had for tests.
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
		{"9.7.4", "Innodb_redo_log_enabled", "ON", store.Good},
		{"9.7.4", "Innodb_redo_log_enabled", "OFF", store.Bad},
	} {
		f := found(t, sqlstore.MySQL, "durability", func(statement string) rows {
			switch {
			case strings.Contains(statement, "'engine'"):
				return rows{{"engine", "InnoDB"}}
			case strings.Contains(statement, "SHOW SESSION VARIABLES"):
				return rows{{"version", test.version}, {"log_bin", "ON"}, {"sync_binlog", "1"}, {"innodb_flush_log_at_trx_commit", "1"}, {test.name, test.value}}
			}
			return nil
		})
		if f.Verdict != test.verdict || (f.Advice == "") != (f.Verdict == store.Good) {
			t.Errorf("%s with %s %s: %v, %v", test.version, test.name, test.value, f.Verdict, f)
		}
	}
	for version, verdict := range map[int64]store.Verdict{
		100_023: store.Doubtful, 130_020: store.Doubtful, 130_021: store.Good, 150_012: store.Doubtful, 150_013: store.Good,
		170_004: store.Doubtful, 170_005: store.Good, 180_000: store.Good,
	} {
		for waits, want := range map[int64]store.Verdict{0: store.Bad, 1: verdict} {
			f := found(t, sqlstore.Postgres, "replicas", func(statement string) rows {
				switch {
				case strings.Contains(statement, "server_version_num"):
					return rows{{"on", "on", "read committed", true, true, true, "", false, version, false, waits, int64(1), int64(0), 1 - waits}}
				case strings.Contains(statement, "here AS"):
					return rows{{"public", "public"}}
				}
				return nil
			})
			if f.Verdict != want {
				t.Errorf("version %d, which waits for %d: %v, %v", version, waits, f.Verdict, f)
			}
		}
	}
}
