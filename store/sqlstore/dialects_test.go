package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// state is an error as PostgreSQL's drivers make them.
type state string

func (s state) Error() string    { return "ERROR: it says so (SQLSTATE " + string(s) + ")" }
func (s state) SQLState() string { return string(s) }

// numbered is an error as MySQL's driver makes them: there is only its text.
type numbered int

func (n numbered) Error() string { return fmt.Sprintf("Error %d (HY000): it says so", int(n)) }

// failing is a store in which, once open, each statement fails with the error that err points to.
func failing(t *testing.T, dialect sqlstore.Dialect, err *error) store.Store {
	t.Helper()
	s, newErr := sqlstore.Open(context.Background(), open(t, func(context.Context, string) (int64, error) {
		return 0, *err
	}), dialect)
	if newErr != nil {
		t.Fatal(newErr)
	}
	return s
}

// classified expects a write that failed with cause to have one kind.
func classified(t *testing.T, dialect sqlstore.Dialect, cause, kind error, hint string) {
	t.Helper()
	var fails error
	s := failing(t, dialect, &fails)
	fails = fmt.Errorf("driver: %w", cause)
	for _, old := range []store.Revision{0, 1} {
		_, err := s.CompareAndSwap(context.Background(), "the key", old, nil)
		refused, unavailable := errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrUnavailable)
		if refused != errors.Is(kind, store.ErrRefused) || unavailable != errors.Is(kind, store.ErrUnavailable) ||
			errors.Is(err, store.ErrConflict) != errors.Is(kind, store.ErrConflict) {
			t.Errorf("%v: %v, want it to be %v alone", cause, err, kind)
		}
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), `"the key"`) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v: %v, want it to wrap the driver's error, name the key and say %q", cause, err, hint)
		}
	}
}

func TestMySQLRefusesOnlyUnappliedWrites(t *testing.T) {
	for _, test := range []struct {
		number numbered
		kind   error // nil: no kind
		hint   string
	}{
		{1020, store.ErrConflict, "others"}, // the record has changed
		{1021, store.ErrUnavailable, "free space"},
		{1030, nil, ""}, // the engine's own, whatever it was
		{1040, store.ErrUnavailable, "max_connections"},
		{1044, store.ErrRefused, "check user"},
		{1045, store.ErrRefused, "password"},
		{1047, store.ErrUnavailable, "synced"}, // a cluster without quorum
		{1049, store.ErrRefused, "no such database"},
		{1053, store.ErrUnavailable, "shutting down"},
		{1054, store.ErrRefused, "not one of Firn's"},
		{1104, store.ErrRefused, "max_join_size"},
		{1114, store.ErrUnavailable, "free space"},
		{1142, store.ErrRefused, "SELECT, INSERT and UPDATE"},
		{1143, store.ErrRefused, "SELECT, INSERT and UPDATE"},
		{1180, nil, ""}, // an error during commit
		{1203, store.ErrUnavailable, "max_connections"},
		{1205, store.ErrUnavailable, ""},
		{1213, store.ErrConflict, "others"},
		{1227, store.ErrRefused, "SELECT, INSERT and UPDATE"},
		{1290, store.ErrRefused, "name the primary"},
		{1317, store.ErrUnavailable, ""}, // interrupted
		{1792, store.ErrRefused, "name the primary"},
		{1836, store.ErrRefused, "name the primary"},
		{3024, store.ErrUnavailable, ""}, // max_execution_time
		{3101, store.ErrUnavailable, ""}, // a group's certification
		{4031, store.ErrUnavailable, ""}, // idle for too long
	} {
		classified(t, sqlstore.MySQL, test.number, test.kind, test.hint)
	}
}

func TestPostgresRefusesOnlyUnappliedWrites(t *testing.T) {
	for _, test := range []struct {
		state state
		kind  error // nil: no kind
		hint  string
	}{
		{"08006", store.ErrUnavailable, ""},
		{"08007", store.ErrUnavailable, ""}, // transaction resolution unknown
		{"22P02", store.ErrRefused, "not one of Firn's"},
		{"25006", store.ErrRefused, "name the primary"},
		{"28000", store.ErrRefused, "check user"},
		{"28P01", store.ErrRefused, "password"},
		{"3D000", store.ErrRefused, "no such database"},
		{"3F000", store.ErrRefused, "search_path"},
		{"40001", store.ErrConflict, "others"},
		{"40003", store.ErrUnavailable, ""}, // statement completion unknown
		{"40P01", store.ErrConflict, "others"},
		{"42501", store.ErrRefused, "SELECT, INSERT and UPDATE"},
		{"42703", store.ErrRefused, "not one of Firn's"},
		{"53100", store.ErrUnavailable, "free space"},
		{"53200", store.ErrUnavailable, ""}, // out of memory
		{"53300", store.ErrUnavailable, "max_connections"},
		{"55P03", store.ErrUnavailable, ""},
		{"57014", store.ErrUnavailable, ""}, // canceled
		{"57P01", store.ErrUnavailable, "try again"},
		{"57P02", store.ErrUnavailable, "try again"},
		{"57P03", store.ErrUnavailable, "try again"},
		{"57P05", store.ErrUnavailable, ""}, // idle for too long
		{"58030", store.ErrUnavailable, ""},
		{"XX000", nil, ""}, // the engine's own, whatever it was
	} {
		classified(t, sqlstore.Postgres, test.state, test.kind, test.hint)
	}
}

func TestAConnectionErrorIsTheThirdOutcome(t *testing.T) {
	for _, dialect := range []sqlstore.Dialect{sqlstore.MySQL, sqlstore.Postgres} {
		for _, cause := range []error{
			io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, syscall.ECONNREFUSED, net.ErrClosed,
			&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, errors.New("invalid connection"),
		} {
			classified(t, dialect, cause, store.ErrUnavailable, "")
		}
		classified(t, dialect, errors.New("TLS requested but server does not support TLS"), store.ErrUnavailable, "leave that out")
		classified(t, dialect, fmt.Errorf("dialer: %w", store.ErrRefused), store.ErrRefused, "")
	}
}

func TestAStatementThatOthersUndidIsTriedAgain(t *testing.T) {
	for _, test := range []struct {
		dialect sqlstore.Dialect
		undone  error
	}{
		{sqlstore.MySQL, numbered(1213)}, {sqlstore.Postgres, state("40001")}, {sqlstore.Postgres, state("40P01")},
	} {
		var tries, fails int
		begun := false
		s, err := sqlstore.Open(context.Background(), open(t, func(context.Context, string) (int64, error) {
			if !begun {
				return 0, nil
			}
			if tries++; tries <= fails {
				return 0, test.undone
			}
			return 0, nil // the row's revision has changed
		}), test.dialect)
		if err != nil {
			t.Fatal(err)
		}
		begun = true
		for _, c := range []struct{ fails, tries int }{{0, 1}, {3, 4}, {9, 10}, {10, 10}} {
			tries, fails = 0, c.fails
			if _, err := s.CompareAndSwap(context.Background(), "k", 7, nil); !errors.Is(err, store.ErrConflict) || tries != c.tries {
				t.Errorf("%v, undone %d times: %v after %d tries, want a conflict after %d", test.undone, c.fails, err, tries, c.tries)
			}
		}
		tries, fails = 0, 10
		if _, err := s.Get(context.Background(), "k"); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) {
			t.Errorf("%v, a read undone %d times: %v", test.undone, fails, err)
		}
	}
}

// A write that may have been applied is never sent a second time.
func TestAWriteThatMayHaveBeenAppliedIsNotTriedAgain(t *testing.T) {
	for _, test := range []struct {
		dialect sqlstore.Dialect
		cause   error
	}{
		{sqlstore.MySQL, numbered(1205)}, {sqlstore.MySQL, numbered(1317)}, {sqlstore.MySQL, io.ErrUnexpectedEOF},
		{sqlstore.Postgres, state("40003")}, {sqlstore.Postgres, state("08007")}, {sqlstore.Postgres, state("57P01")}, {sqlstore.Postgres, io.ErrUnexpectedEOF},
	} {
		writes := 0
		s, err := sqlstore.Open(context.Background(), open(t, func(_ context.Context, statement string) (int64, error) {
			if strings.HasPrefix(statement, "UPDATE") {
				writes++
				return 0, test.cause
			}
			return 0, nil
		}), test.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CompareAndSwap(context.Background(), "k", 7, nil); !errors.Is(err, store.ErrUnavailable) || writes != 1 {
			t.Errorf("%v: %v after %d writes", test.cause, err, writes)
		}
	}
}

func TestAnAccountThatMayNotCreateTheTableGetsTheStatement(t *testing.T) {
	for _, test := range []struct {
		dialect         sqlstore.Dialect
		missing, denied error
	}{
		{sqlstore.MySQL, numbered(1146), numbered(1142)}, {sqlstore.Postgres, state("42P01"), state("42501")},
	} {
		_, err := sqlstore.Open(context.Background(), open(t, func(_ context.Context, statement string) (int64, error) {
			if strings.HasPrefix(statement, "CREATE") {
				return 0, test.denied
			}
			if strings.HasPrefix(statement, "SELECT k, v, rev") {
				return 0, test.missing
			}
			return 0, nil
		}), test.dialect)
		if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), test.dialect.Schema()) {
			t.Errorf("%v: %v, want ErrRefused with the statement", test.dialect, err)
		}
	}
}

func TestOnlyADatabaseOfAnotherHostIsAClock(t *testing.T) {
	for _, test := range []struct {
		dialect sqlstore.Dialect
		clock   bool
	}{{sqlstore.SQLite, false}, {sqlstore.MySQL, true}, {sqlstore.Postgres, true}} {
		var none error
		s := failing(t, test.dialect, &none)
		if got := s.Traits(); (got.Clock != nil) != test.clock || got.Embedded == test.clock {
			t.Errorf("%v has %+v", test.dialect, got)
		}
	}
}

// Sessions of PostgreSQL without standard_conforming_strings, and those of MySQL without NO_BACKSLASH_ESCAPES, read a
// backslash in a literal as an escape.
func TestNoStatementHasABackslash(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	statements := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, "SELECT ") {
				statements++
			}
			if strings.Contains(strings.Trim(text, `\`), `\`) { // code that looks for backslashes has nothing else in its literals
				t.Errorf("%s: %s", file, text)
			}
			return true
		})
	}
	if statements < 20 {
		t.Errorf("only %d statements were found", statements)
	}
}
