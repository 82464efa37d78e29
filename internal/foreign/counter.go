package foreign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// Counters is a table in which another system keeps counters, each in the column max_id of a row.
type Counters struct {
	System  string // for errors
	Table   string
	Key     string   // the column that names the counter
	Columns []string // what is read of a row
}

// A Move is a statement that makes a counter stand at To.
type Move struct {
	To        int64
	Statement string
	Args      []any
}

// Move moves the counter of name, or of the other name that it has in names. It calls read with
// the row, and then decide. A counter that is not there is [store.ErrNotFound].
//
// Why no range of it is granted twice: the row stays locked from the first look to the commit,
// the counter is seen to stand where the range ends, and Move returns nil only after the commit
// was acknowledged. Where that answer was lost, the range is a gap.
func (c Counters) Move(ctx context.Context, db *sql.DB, names map[string]string, name string, step int64,
	read func(r *Row), decide func(key string) (Move, error)) (err error) {
	key, ok := names[name]
	if !ok {
		key = name
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: fetch a range of %q: %w", c.System, key, err)
		}
	}()
	if step < 1 {
		return firn.NewRangeError("step", step, 1, math.MaxInt64, "")
	}
	if db == nil {
		return errors.New("Source.DB is required")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// It undoes what was not committed. If it fails the connection is lost, and the server undoes it.
	defer func() { _ = tx.Rollback() }()
	found := 0
	err = rows(ctx, tx, c.Table, c.Columns, "WHERE "+c.Key+" = ?"+unlimited+" FOR UPDATE", []any{key}, func(r *Row) {
		found++
		read(r)
	})
	switch {
	case err != nil:
		return err
	case found == 0:
		return fmt.Errorf("table %s has no row of that %s: %w: insert one, or correct the name", c.Table, c.Key, store.ErrNotFound)
	case found > 1: // any of them could be the counter
		return fmt.Errorf("table %s has %d rows of that %s, 1 is allowed: make it a unique key", c.Table, found, c.Key)
	}
	move, err := decide(key)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, move.Statement, move.Args...)
	if err != nil {
		return err
	}
	// A server that is not strict writes the greatest number that a column holds in the place of a
	// greater one, again and again.
	var stands int64
	if err := tx.QueryRowContext(ctx, "SELECT max_id FROM "+c.Table+" WHERE "+c.Key+" = ?", key).Scan(&stands); err != nil {
		return err
	}
	if stands != move.To {
		return fmt.Errorf("table %s: max_id is %d where %d was written: its column does not hold that, make it a BIGINT", c.Table, stands, move.To)
	}
	// In a table of an engine that locks no rows another may have moved it as far.
	if changed, err := result.RowsAffected(); err != nil || changed != 1 {
		return errors.Join(fmt.Errorf("table %s: %w: %d rows were changed, 1 is expected: make it a table of InnoDB", c.Table, store.ErrUnavailable, changed), err)
	}
	return tx.Commit()
}
