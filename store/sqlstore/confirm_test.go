package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// scripted is a database whose queries return at most one row; each write changes one row.
type scripted struct {
	answers
	row func(statement string) (oneRow, error)
}

func (s scripted) Connect(context.Context) (driver.Conn, error) { return s, nil }

func (s scripted) QueryContext(_ context.Context, statement string, _ []driver.NamedValue) (driver.Rows, error) {
	row, err := s.row(statement)
	if row == nil {
		return noRows{}, err
	}
	return &row, err
}

func one(context.Context, string) (int64, error) { return 1, nil }

func TestAMySQLWriteIsConfirmedOnceAReplicaHasIt(t *testing.T) {
	type primary struct {
		life   string
		waits  bool
		missed int64
		acked  int64
		since  int64
		silent bool
	}
	for _, test := range []struct {
		name      string
		after     primary
		err       error // of the query
		confirmed bool
	}{
		{"acknowledged", primary{"life", true, 7, 4, 5, false}, nil, true},
		{"the server has given up waiting", primary{"life", false, 7, 4, 5, false}, nil, false},
		{"a commit was not acknowledged", primary{"life", true, 8, 4, 5, false}, nil, false},
		{"the counts start over", primary{"life", true, 0, 0, 5, false}, nil, false},
		{"the counts started over, and as many were missed since", primary{"life", true, 7, 0, 5, false}, nil, false},
		{"the counts started over, and others brought them there since", primary{"life", true, 7, 4, 6, false}, nil, false},
		{"the counts started over in this second", primary{"life", true, 7, 4, -1, false}, nil, false},
		{"it is not in the log", primary{"life", true, 7, 4, 5, true}, nil, false},
		{"another server answers", primary{"other", true, 7, 4, 5, false}, nil, false},
		{"the account may not ask any more", primary{}, numbered(1142), false},
	} {
		vets := 0
		db := scripted{one, func(statement string) (oneRow, error) {
			if !strings.Contains(statement, "@firn_life :=") {
				return nil, nil
			}
			p, err := primary{"life", true, 7, 3, 5, false}, error(nil)
			if vets++; vets > 1 {
				p, err = test.after, test.err
			}
			return oneRow{int64(0), "fit", "life", p.life, true, p.waits, p.missed, p.acked, p.since, p.silent}, err
		}}
		s, err := sqlstore.Open(context.Background(), sql.OpenDB(db), sqlstore.MySQL)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.CompareAndSwap(context.Background(), "k", 1, nil)
		if (err == nil) != test.confirmed || err == nil && e.Life != "life" {
			t.Errorf("%s: %+v, %v", test.name, e, err)
		}
		if err != nil && (store.Unapplied(err) || !errors.Is(err, store.ErrUnavailable)) {
			t.Errorf("%s: %v, which was applied", test.name, err)
		}
	}
}

func TestAWarningOfTheWriteItselfMakesItUnconfirmed(t *testing.T) {
	for _, test := range []struct {
		name      string
		warnings  []string // as the session is asked before and after
		confirmed bool
	}{
		{"none", nil, true},
		{"of something before it", []string{"collation version mismatch", ""}, true},
		{"of its commit", []string{"", "canceling wait"}, false},
	} {
		var warnings []string
		dialect := sqlstore.Postgres.WithSession(func(any) sqlstore.Session {
			s := sqlstore.Session{Idle: true}
			if len(warnings) > 0 {
				s.Warning, warnings = warnings[0], warnings[1:]
			}
			return s
		})
		db := scripted{one, func(statement string) (oneRow, error) {
			if strings.HasPrefix(statement, "UPDATE") {
				return oneRow{true, "0000000A00000000000000FF", "1795322518.596", "*", "on", "warning"}, nil
			}
			return nil, nil
		}}
		s, err := sqlstore.Open(context.Background(), sql.OpenDB(db), dialect)
		if err != nil {
			t.Fatal(err)
		}
		warnings = test.warnings
		e, err := s.CompareAndSwap(context.Background(), "k", 1, nil)
		if (err == nil) != test.confirmed || store.Unapplied(err) || err == nil && e.Life != "0000000A 1795322518.596" {
			t.Errorf("%s: %+v, %v", test.name, e, err)
		}
	}
}

// A pooler may hand over another client's session with the first statement.
func TestACallOnASessionThatIsInATransactionAfterwardsFails(t *testing.T) {
	idle, alone := true, false
	dialect := sqlstore.Postgres.WithSession(func(any) sqlstore.Session { return sqlstore.Session{Idle: idle} })
	db := scripted{one, func(statement string) (oneRow, error) {
		idle = alone
		if strings.HasPrefix(statement, "UPDATE") {
			return oneRow{true, "000000010000", "start", "", "on", "warning"}, nil
		}
		return nil, nil
	}}
	if _, err := sqlstore.Open(context.Background(), sql.OpenDB(db), dialect); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "transaction") {
		t.Errorf("a reading: %v", err)
	}
	idle, alone = true, true
	s, err := sqlstore.Open(context.Background(), sql.OpenDB(db), dialect)
	if err != nil {
		t.Fatal(err)
	}
	alone = false
	if _, err := s.CompareAndSwap(context.Background(), "k", 1, nil); !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) {
		t.Errorf("a write: %v", err)
	}
}

// A restarted server leaves bad connections behind, one for each that was idle.
func TestBadConnectionsArePassedOver(t *testing.T) {
	bad := 0
	s, err := sqlstore.Open(context.Background(), open(t, func(_ context.Context, statement string) (int64, error) {
		if strings.HasPrefix(statement, "UPDATE") && bad > 0 {
			bad--
			return 0, driver.ErrBadConn
		}
		return 1, nil
	}), sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	bad = 2
	if _, err := s.CompareAndSwap(context.Background(), "k", 1, nil); err != nil {
		t.Error(err)
	}
	bad = 1000
	if _, err := s.CompareAndSwap(context.Background(), "k", 1, nil); !errors.Is(err, driver.ErrBadConn) || store.Unapplied(err) {
		t.Errorf("with no end of them: %v", err)
	}
}
