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

// panicking panics over the answer to each write.
func panicking() scripted {
	return scripted{one, func(statement string) (oneRow, error) {
		if strings.HasPrefix(statement, "UPDATE") {
			panic("slice bounds out of range")
		}
		return nil, nil
	}}
}

// The server may have applied the write before it sent what the driver panics over.
func TestADriverThatPanicsLeavesTheOutcomeOpen(t *testing.T) {
	for what, db := range map[string]*sql.DB{
		"as the driver is": sql.OpenDB(panicking()),
		"guarded":          sql.OpenDB(sqlstore.Guarded(panicking(), nil)),
	} {
		tries := 2
		if what == "guarded" { // database/sql gets the connection back
			db.SetMaxOpenConns(1)
			tries = 20
		}
		s, err := sqlstore.Open(context.Background(), db, sqlstore.Postgres)
		if err != nil {
			t.Fatal(err)
		}
		for range tries {
			_, err = s.CompareAndSwap(context.Background(), "k", 1, nil)
			if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || !strings.Contains(err.Error(), "malformed answer") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := s.Get(context.Background(), "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: the next read: %v", what, err)
		}
	}
}

// A startled connector panics until it has been asked some times.
type startled struct {
	scripted
	panics int
}

func (f *startled) Connect(ctx context.Context) (driver.Conn, error) {
	if f.panics--; f.panics >= 0 {
		panic("slice bounds out of range [:13] with capacity 1")
	}
	return f.scripted.Connect(ctx)
}

func TestADriverThatPanicsOverAGreetingIsAnError(t *testing.T) {
	db := sql.OpenDB(sqlstore.Guarded(&startled{panicking(), 1}, func(err error) error { return err }))
	db.SetMaxOpenConns(1)
	if _, err := sqlstore.Open(context.Background(), db, sqlstore.Postgres); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "malformed answer") {
		t.Errorf("the first: %v", err)
	}
	if _, err := sqlstore.Open(context.Background(), db, sqlstore.Postgres); err != nil {
		t.Errorf("the second: %v", err)
	}
}

func TestADriversErrorIsExplained(t *testing.T) {
	why := errors.New("because")
	db := sql.OpenDB(sqlstore.Guarded(scripted{one, func(statement string) (oneRow, error) {
		if strings.HasPrefix(statement, "UPDATE") {
			return nil, errors.New("invalid connection")
		}
		return nil, nil
	}}, func(err error) error { return errors.Join(err, why) }))
	s, err := sqlstore.Open(context.Background(), db, sqlstore.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareAndSwap(context.Background(), "k", 1, nil); !errors.Is(err, why) || store.Unapplied(err) {
		t.Error(err)
	}
}

func TestAnAnswerWithoutColumnsIsMalformed(t *testing.T) {
	db := sql.OpenDB(bare{scripted{one, func(string) (oneRow, error) { return nil, nil }}})
	if _, err := sqlstore.Open(context.Background(), db, sqlstore.Postgres); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "no columns") {
		t.Error(err)
	}
}

// bare answers each query without columns.
type bare struct{ scripted }

func (b bare) Connect(context.Context) (driver.Conn, error) { return b, nil }

func (bare) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return noColumns{}, nil
}

type noColumns struct{ noRows }

func (noColumns) Columns() []string { return nil }
