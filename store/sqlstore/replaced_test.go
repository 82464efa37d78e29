package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// onFile is a SQLite that has a file open, and answers its statements.
type onFile struct {
	answers
	path string
}

func (o onFile) Connect(context.Context) (driver.Conn, error) { return o, nil }

func (o onFile) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	switch {
	case strings.Contains(statement, "pragma_busy_timeout"):
		return &oneRow{o.path, int64(1000)}, nil
	case strings.Contains(statement, "EXISTS"):
		return &oneRow{true}, nil
	}
	return o.answers.QueryContext(ctx, statement, args)
}

// SQLite goes on with a file that was removed or replaced, which no other process reads.
func TestARemovedOrReplacedFileOfSQLiteIsDetected(t *testing.T) {
	dir := t.TempDir()
	path, away := filepath.Join(dir, "firn.db"), filepath.Join(dir, "away.db")
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.WriteFile(filepath.Join(dir, "copy.db"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	writes, underWrite := 0, func() {}
	db := sql.OpenDB(onFile{func(_ context.Context, statement string) (int64, error) {
		if strings.HasPrefix(statement, "INSERT") {
			writes++
			underWrite()
		}
		return 1, nil
	}, path})
	s, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	expect := func(when, says string) {
		t.Helper()
		_, get := s.Get(t.Context(), "k")
		_, list := s.List(t.Context(), "")
		_, write := s.CompareAndSwap(t.Context(), "k", 0, nil)
		for call, err := range map[string]error{"get": get, "list": list, "write": write} {
			if says == "" && err != nil && !errors.Is(err, store.ErrNotFound) ||
				says != "" && (!errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path)) {
				t.Errorf("%s: %s: %v, want %q", when, call, err, says)
			}
		}
	}
	expect("in place", "")
	move(path, away)
	expect("removed", "is gone")
	move(away, path)
	expect("put back", "")
	app, err := db.Conn(t.Context()) // of the program, which has the old file open
	if err != nil {
		t.Fatal(err)
	}
	move(path, away)
	move(filepath.Join(dir, "copy.db"), path)
	expect("replaced", "was replaced")
	expect("replaced, and the old file still open", "was replaced")
	if writes != 2 {
		t.Errorf("%d writes, want the two before", writes)
	}
	if err := app.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("on the last session of the old file: %v", err)
	}
	expect("when no session has the old file open", "")
	underWrite = func() { move(path, away) }
	_, err = s.CompareAndSwap(t.Context(), "k", 0, nil)
	if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || writes != 4 {
		t.Errorf("removed under a write: %v, %d writes", err, writes)
	}
}
