// Package sqlstore is a [store.Store] over database/sql. The caller opens the
// database and so picks the driver; the package needs none:
//
//	db, err := sql.Open("sqlite", "file:firn.db?_pragma=busy_timeout(10000)")
//	s, err := sqlstore.New(ctx, db, sqlstore.SQLite)
//
// Everything is in one table, made on first use, of keys, values and
// revisions. Each write is one statement, so no transaction spans two round
// trips.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/firn-id/firn/store"
)

// Table is the name of the table.
const Table = "firn_registers"

// Store is a [store.Store] in a table. Make one with [New].
type Store struct {
	db      *sql.DB
	dialect Dialect
}

// New returns a store in db, making its table if there is none. It does not
// write when the table exists. Close closes db.
func New(ctx context.Context, db *sql.DB, dialect Dialect) (*Store, error) {
	s := &Store{db: db, dialect: dialect}
	rows, err := db.QueryContext(ctx, dialect.probe)
	if err == nil {
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err == nil {
		return s, nil
	}
	if !dialect.missing(err) {
		return nil, s.wrap("open table", Table, err)
	}
	if _, err := db.ExecContext(ctx, dialect.create); err != nil {
		return nil, s.wrap("make table", Table, err)
	}
	return s, nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	e := store.Entry{Key: key}
	err := s.db.QueryRowContext(ctx, s.dialect.get, key).Scan(&e.Value, &e.Revision)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Entry{}, fmt.Errorf("sqlstore: get %q: %w", key, store.ErrNotFound)
	}
	if err != nil {
		return store.Entry{}, s.wrap("get", key, err)
	}
	return e, nil
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Revision, error) {
	if err := store.CheckKey(key); err != nil {
		return 0, err
	}
	if err := store.CheckValue(key, value); err != nil {
		return 0, err
	}
	if value == nil {
		value = []byte{} // a nil slice would be written as NULL
	}
	revision := store.Revision(rand.Int64() | 1) // never 0
	var (
		result sql.Result
		err    error
	)
	if old == 0 {
		result, err = s.db.ExecContext(ctx, s.dialect.insert, key, value, revision)
	} else {
		result, err = s.db.ExecContext(ctx, s.dialect.update, value, revision, key, old)
	}
	if err != nil {
		return 0, s.wrap("compare-and-swap", key, err)
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return 0, s.wrap("compare-and-swap", key, err)
	}
	if changed == 0 {
		return 0, fmt.Errorf("sqlstore: compare-and-swap %q: %w: the revision is not %d", key, store.ErrConflict, old)
	}
	return revision, nil
}

// afterAll sorts after every printable character.
const afterAll = "\U0010FFFF"

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	rows, err := s.db.QueryContext(ctx, s.dialect.list, prefix, prefix+afterAll)
	if err != nil {
		return nil, s.wrap("list", prefix, err)
	}
	var list []store.Entry
	for rows.Next() {
		var e store.Entry
		if err := rows.Scan(&e.Key, &e.Value, &e.Revision); err != nil {
			return nil, s.wrap("list", prefix, errors.Join(err, rows.Close()))
		}
		if strings.HasPrefix(e.Key, prefix) { // where the collation is laxer than ours
			list = append(list, e)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, s.wrap("list", prefix, err)
	}
	return list, nil
}

// Close closes the database.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return s.wrap("close", Table, err)
	}
	return nil
}

// Embedded implements [store.Embedded].
func (s *Store) Embedded() bool { return s.dialect.embedded }

// wrap says where an error came from and what kind it is.
func (s *Store) wrap(op, key string, err error) error {
	kind, hint := s.dialect.classify(err)
	switch {
	case kind == nil && errors.Is(err, sql.ErrConnDone), err.Error() == "sql: database is closed":
		kind = store.ErrUnavailable
	case kind == nil:
		return fmt.Errorf("sqlstore: %s %q: %w", op, key, err)
	}
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return fmt.Errorf("sqlstore: %s %q: %w: %w%s", op, key, kind, err, hint)
}
