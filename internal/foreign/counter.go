package foreign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// A Counter is the column max_id of a row that is locked: nobody else can move it. Why
// no range of it is granted twice: the row stays locked from the first look to the commit,
// the counter is seen to stand where the range ends, and the range is returned only after
// the commit was acknowledged. Where that answer was lost, the range is a gap.
type Counter struct {
	tx                *sql.Tx
	table, key, value string
}

// Lock locks the only row of table whose column key has a value, and calls read with it. A
// row that is not there is an error that is [store.ErrNotFound].
func Lock(ctx context.Context, db *sql.DB, table, key, value string, columns []string, read func(r *Row)) (*Counter, error) {
	if db == nil {
		return nil, errors.New("Source.DB is required")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	c := &Counter{tx: tx, table: table, key: key, value: value}
	rows := 0
	err = where(ctx, tx, table, key, value, columns, " FOR UPDATE", func(r *Row) {
		rows++
		read(r)
	})
	switch {
	case err != nil:
	case rows == 0:
		err = fmt.Errorf("table %s has no row of that %s: %w: insert one, or correct the name", table, key, store.ErrNotFound)
	case rows > 1: // nobody could tell which of them is the counter
		err = fmt.Errorf("table %s has %d rows of that %s, 1 is allowed: make it a unique key", table, rows, key)
	}
	if err != nil {
		c.Unlock()
		return nil, err
	}
	return c, nil
}

// Unlock undoes what was not committed. If that fails the connection is lost, and the server
// undoes it.
func (c *Counter) Unlock() { _ = c.tx.Rollback() }

// Move moves the counter by a statement, and commits. It looks whether the counter is
// there then: a server that is not strict writes the greatest number that a column holds in
// the place of a greater one, again and again.
func (c *Counter) Move(ctx context.Context, to int64, statement string, args ...any) error {
	result, err := c.tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	var stands int64
	if err := c.tx.QueryRowContext(ctx, "SELECT max_id FROM "+c.table+" WHERE "+c.key+" = ?", c.value).Scan(&stands); err != nil {
		return err
	}
	if stands != to {
		return fmt.Errorf("table %s: max_id is %d where %d was written: its column does not hold that, make it a BIGINT", c.table, stands, to)
	}
	// In a table of an engine that locks no rows another may have moved it as far.
	if changed, err := result.RowsAffected(); err != nil || changed != 1 {
		return errors.Join(fmt.Errorf("table %s: %w: %d rows were changed, 1 is expected: make it a table of InnoDB", c.table, store.ErrUnavailable, changed), err)
	}
	return c.tx.Commit()
}
