package foreign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// Counters is a table in which another system keeps counters, each in the column max_id of a row.
type Counters struct {
	System  string // for errors
	Table   string
	Key     string   // the column that names the counter
	Columns []string // the columns to read
	Highs   *Highs   // of the source
}

// Highs has the greatest id that a source was granted of each counter, by its key: several names may share one. The zero
// value is ready for use.
type Highs struct {
	mu   sync.Mutex
	last map[string]firn.ID
}

func (h *Highs) above(key string, id firn.ID) firn.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(id, h.last[key])
}

func (h *Highs) had(key string, last firn.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last = map[string]firn.ID{}
	}
	h.last[key] = max(h.last[key], last)
}

// A Move grants a range by a statement that sets a counter to To.
type Move struct {
	Grant     segment.Range
	To        int64
	Statement string
	Args      []any
}

// Move grants a range of the counter of name; names maps names to other names in the table. It calls read with
// the row, and then decide; its ask is above all ids that the source was granted, even if the table was set back.
// The error for a missing counter is [store.ErrNotFound].
//
// No range is granted twice: the row stays locked from the first read to the commit, Move checks
// that the counter has reached the end of the range, and returns nil only after the commit was
// acknowledged. If that answer is lost, the range becomes a gap.
func (c Counters) Move(ctx context.Context, db *sql.DB, names map[string]string, name string, ask segment.Ask,
	read func(r *Row), decide func(key string, ask segment.Ask) (Move, error)) (segment.Range, error) {
	key, ok := names[name]
	if !ok {
		key = name
	}
	move, err := c.move(ctx, db, key, ask, read, decide)
	if err != nil {
		return segment.Range{}, fmt.Errorf("%s: fetch a range of %q: %w", c.System, key, err)
	}
	c.Highs.had(key, move.Grant.Last())
	return move.Grant, nil
}

func (c Counters) move(ctx context.Context, db *sql.DB, key string, ask segment.Ask,
	read func(r *Row), decide func(key string, ask segment.Ask) (Move, error)) (move Move, err error) {
	if ask.Step < 1 {
		return move, firn.NewRangeError("step", ask.Step, 1, math.MaxInt64, "")
	}
	if db == nil {
		return move, errors.New("Source.DB is required")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return move, err
	}
	// A rollback without effect after a commit. If it fails, the connection is lost and the server rolls
	// back.
	defer func() { _ = tx.Rollback() }()
	found := 0
	err = rows(ctx, tx, c.Table, c.Columns, "WHERE "+c.Key+" = ?"+unlimited+" FOR UPDATE", []any{key}, func(r *Row) {
		found++
		read(r)
	})
	switch {
	case err != nil:
		return move, err
	case found == 0:
		return move, fmt.Errorf("table %s has no row with that %s: %w: insert one, or correct the name", c.Table, c.Key, store.ErrNotFound)
	case found > 1: // it is unclear which row is the counter
		return move, fmt.Errorf("table %s has %d rows with that %s, only 1 is allowed: make it a unique key", c.Table, found, c.Key)
	}
	ask.Above = c.Highs.above(key, ask.Above)
	move, err = decide(key, ask)
	if err != nil {
		return move, err
	}
	result, err := tx.ExecContext(ctx, move.Statement, move.Args...)
	if err != nil {
		return move, err
	}
	// If a number is too great for its column, a server that is not in strict mode writes the column's
	// greatest number instead. The next ranges would repeat.
	var stands int64
	if err := tx.QueryRowContext(ctx, "SELECT max_id FROM "+c.Table+" WHERE "+c.Key+" = ?", key).Scan(&stands); err != nil {
		return move, err
	}
	if stands != move.To {
		return move, fmt.Errorf("table %s: max_id is %d although %d was written: the column is too small, make it a BIGINT", c.Table, stands, move.To)
	}
	// In a table whose engine does not lock rows, another process may have moved it.
	if changed, err := result.RowsAffected(); err != nil || changed != 1 {
		return move, errors.Join(fmt.Errorf("table %s: %w: %d rows were changed, expected 1: change the table's engine to InnoDB", c.Table, store.ErrUnavailable, changed), err)
	}
	return move, tx.Commit()
}
