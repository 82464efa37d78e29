package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// coded is an error as SQLite's drivers make them.
type coded int

func (c coded) Error() string { return fmt.Sprintf("sqlite says %d", int(c)) }
func (c coded) Code() int     { return int(c) }

// answers is a database with a function that answers every statement: an error, or how many rows it
// changed. Tests against a real SQLite are with the program that brings its driver.
type answers func(ctx context.Context, statement string) (changed int64, err error)

func (a answers) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (a answers) Driver() driver.Driver                        { return nil }
func (a answers) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("not prepared") }
func (a answers) Begin() (driver.Tx, error)                    { return nil, errors.New("no transactions") }
func (a answers) Close() error                                 { return nil }

func (a answers) ExecContext(ctx context.Context, statement string, _ []driver.NamedValue) (driver.Result, error) {
	changed, err := a(ctx, statement)
	return driver.RowsAffected(changed), err
}

func (a answers) QueryContext(ctx context.Context, statement string, _ []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(statement, "@firn_life :=") { // vetting a MySQL session
		return &oneRow{int64(0), "fit", "life", "life", false, false, int64(0), int64(0), int64(0), false}, nil
	}
	_, err := a(ctx, statement)
	return noRows{}, err
}

type noRows struct{}

func (noRows) Columns() []string         { return []string{"k", "v", "rev"} }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

// oneRow is a row that can be read once.
type oneRow []driver.Value

func (r *oneRow) Columns() []string { return make([]string, len(*r)) }
func (r *oneRow) Close() error      { return nil }
func (r *oneRow) Next(into []driver.Value) error {
	if *r == nil {
		return io.EOF
	}
	copy(into, *r)
	*r = nil
	return nil
}

func open(t *testing.T, a answers) *sql.DB {
	t.Helper()
	db := sql.OpenDB(a)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestSQLiteRefusesOnlyUnappliedWrites(t *testing.T) {
	for _, test := range []struct {
		code int
		kind error // nil: no kind
		hint string
	}{
		{1, store.ErrRefused, "not one of Firn's"},
		{3, store.ErrRefused, "writable"},
		{5, store.ErrUnavailable, "locked"},
		{5 | 1<<8, store.ErrUnavailable, "locked"}, // SQLITE_BUSY_RECOVERY
		{5 | 2<<8, store.ErrUnavailable, "locked"}, // SQLITE_BUSY_SNAPSHOT
		{6, store.ErrUnavailable, "locked"},
		{7, nil, ""}, // out of memory
		{8, store.ErrRefused, "writable"},
		{8 | 4<<8, store.ErrRefused, "writable"}, // SQLITE_READONLY_DBMOVED
		{9, nil, ""},                             // interrupted
		{10, store.ErrUnavailable, "disk"},
		{10 | 4<<8, store.ErrUnavailable, "disk"}, // SQLITE_IOERR_FSYNC
		{11, store.ErrUnavailable, "damaged"},
		{13, errors.Join(store.ErrRefused, store.ErrUnavailable), "free space"},
		{14, store.ErrUnavailable, "folder"},
		{15, store.ErrUnavailable, "locked"},
		{19, nil, ""}, // a constraint, which our table has not
		{23, store.ErrRefused, "writable"},
		{26, store.ErrRefused, "not a SQLite database"},
		{101, nil, ""}, // not an error
	} {
		var failing bool
		s, err := sqlstore.Open(context.Background(), open(t, func(context.Context, string) (int64, error) {
			if failing {
				return 0, fmt.Errorf("driver: %w", coded(test.code))
			}
			return 0, nil
		}), sqlstore.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		failing = true
		for _, old := range []store.Revision{0, 1} {
			_, err = s.CompareAndSwap(context.Background(), "the key", old, nil)
			refused, unavailable := errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrUnavailable)
			if refused != errors.Is(test.kind, store.ErrRefused) || unavailable != errors.Is(test.kind, store.ErrUnavailable) ||
				store.Unapplied(err) != refused || errors.Is(err, store.ErrConflict) {
				t.Errorf("code %d: %v, want it to be %v alone", test.code, err, test.kind)
			}
			var cause coded
			if !errors.As(err, &cause) || !strings.Contains(err.Error(), `"the key"`) || !strings.Contains(err.Error(), test.hint) {
				t.Errorf("code %d: %v, want it to wrap the driver's error, name the key and say %q", test.code, err, test.hint)
			}
		}
	}
}

func TestAnEndedContextIsInTheErrorWhateverTheDriverSays(t *testing.T) {
	why := errors.New("the reason given")
	for _, test := range []struct {
		name    string
		says    error // of the driver, once the context has ended
		kind    error
		certain bool
	}{
		{"interrupted", coded(9), nil, false},
		{"busy", coded(5), store.ErrUnavailable, false},
		{"an error of its own", errors.New("connection reset"), nil, false},
		{"the context's", context.Canceled, nil, false},
		{"read-only", coded(8), store.ErrRefused, true},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		s, err := sqlstore.Open(ctx, open(t, func(_ context.Context, statement string) (int64, error) {
			if !strings.HasPrefix(statement, "INSERT") {
				return 0, nil
			}
			cancel(why)
			return 0, test.says
		}), sqlstore.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(ctx, "k", 0, nil)
		if !errors.Is(err, test.says) || test.kind != nil && !errors.Is(err, test.kind) || store.Unapplied(err) != test.certain {
			t.Errorf("%s: %v", test.name, err)
		}
		if !test.certain && (!errors.Is(err, why) || !errors.Is(err, context.Canceled)) {
			t.Errorf("%s: %v, want it to be %q and %q as well", test.name, err, context.Canceled, why)
		}
	}
}

func TestAWriteThatChangesNoRowIsAConflict(t *testing.T) {
	var changed int64
	s, err := sqlstore.Open(context.Background(), open(t, func(context.Context, string) (int64, error) {
		return changed, nil
	}), sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range []store.Revision{0, 5} {
		changed = 0
		if _, err := s.CompareAndSwap(context.Background(), "k", old, nil); !errors.Is(err, store.ErrConflict) {
			t.Errorf("from %d, no row: %v", old, err)
		}
		changed = 1
		if e, err := s.CompareAndSwap(context.Background(), "k", old, nil); err != nil || e.Revision == 0 {
			t.Errorf("from %d, one row: %v, %v", old, e, err)
		}
	}
}

func TestATableThatExistsIsOpenedWithoutAWrite(t *testing.T) {
	_, err := sqlstore.Open(context.Background(), open(t, func(_ context.Context, statement string) (int64, error) {
		if !strings.HasPrefix(statement, "SELECT") {
			t.Errorf("it ran %s", statement)
		}
		return 0, nil
	}), sqlstore.SQLite)
	if err != nil {
		t.Error(err)
	}
}

func TestATableIsMadeOnlyWhenItMayBeMissing(t *testing.T) {
	for _, code := range []coded{5, 8, 10, 11, 14, 26} {
		_, err := sqlstore.Open(context.Background(), open(t, func(_ context.Context, statement string) (int64, error) {
			if !strings.HasPrefix(statement, "SELECT") {
				t.Errorf("code %d: it ran %s", code, statement)
			}
			return 0, code
		}), sqlstore.SQLite)
		if !errors.Is(err, code) {
			t.Errorf("code %d: %v", code, err)
		}
	}
}

func TestATableThatLooksMissingAfterItWasMadeIsForeign(t *testing.T) {
	probes := 0
	_, err := sqlstore.Open(context.Background(), open(t, func(_ context.Context, statement string) (int64, error) {
		if !strings.HasPrefix(statement, "SELECT k, v, rev") {
			return 0, nil
		}
		probes++
		return 0, coded(1)
	}), sqlstore.SQLite)
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), sqlstore.Table) || probes != 2 {
		t.Errorf("%v after %d probes", err, probes)
	}
}

func TestAVanishedTableIsCreatedAgainAndTheCallSucceeds(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		call func(store.Store) error
		want error
	}{
		"get":                    {func(s store.Store) error { _, err := s.Get(ctx, "k"); return err }, store.ErrNotFound},
		"list":                   {func(s store.Store) error { _, err := s.List(ctx, ""); return err }, nil},
		"create":                 {func(s store.Store) error { _, err := s.CompareAndSwap(ctx, "k", 0, nil); return err }, nil},
		"write over what it had": {func(s store.Store) error { _, err := s.CompareAndSwap(ctx, "k", 7, nil); return err }, store.ErrConflict},
	} {
		there, made := true, 0
		s, err := sqlstore.Open(ctx, open(t, func(_ context.Context, statement string) (int64, error) {
			switch {
			case strings.HasPrefix(statement, "CREATE"):
				there = true
				made++
			case !there:
				return 0, coded(1)
			case strings.HasPrefix(statement, "INSERT"):
				return 1, nil
			}
			return 0, nil
		}), sqlstore.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		there = false
		if err := test.call(s); !errors.Is(err, test.want) || made != 1 {
			t.Errorf("%s: %v, want %v, after the table was made %d times", name, err, test.want, made)
		}
	}
}

// partings is answers over connections whose close fails with the given error.
type partings struct {
	answers
	err error
}

func (p partings) Connect(context.Context) (driver.Conn, error) { return p, nil }
func (p partings) Close() error                                 { return p.err }

func TestConnectionsThatTheServerEndedAreNoErrorOfClose(t *testing.T) {
	broken := errors.New("disk full")
	for _, test := range []struct{ parting, want error }{
		{nil, nil},
		{driver.ErrBadConn, nil},
		{broken, broken},
	} {
		p := partings{func(context.Context, string) (int64, error) { return 0, nil }, test.parting}
		s, err := sqlstore.Open(context.Background(), sql.OpenDB(p), sqlstore.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); !errors.Is(err, test.want) {
			t.Errorf("a connection closed with %v: %v, want %v", test.parting, err, test.want)
		}
	}
}
