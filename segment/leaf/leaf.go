// Package leaf issues ids from the table leaf_alloc of a Leaf segment service:
// beside its running nodes, or after them.
//
//	s, err := segment.Open(segment.Config{Source: &leaf.Source{DB: db}})
//	orders, err := s.Name("orders") // a biz_tag
//
// [Source] moves the table's counters by the statements that Leaf's nodes use, having
// locked the row, so that both may issue at the same time: each has ranges of its
// own. [Read] reads
// the table once, for taking its counters over into a store of Firn's; from then
// on the nodes must not run. The database is MySQL or MariaDB, by any driver.
//
// It relies on the table being of InnoDB, as Leaf has it, so that what is
// rolled back never was; and on biz_tag being its primary key. A commit counts once the server
// acknowledges it, as for Leaf's nodes: what a replica that is promoted does not have, is granted again. A
// primary whose semi-synchronous replication has given up waiting says yes all the same.
package leaf

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/foreign"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// Table is the table that Leaf keeps its counters in.
const Table = "leaf_alloc"

// A Row is a row of the table.
type Row struct {
	Tag         string  // biz_tag
	MaxID       firn.ID // where the next range begins: all ids below are granted, it is not
	Step        int64   // how many ids a node takes, unless it adapts that
	Description string
	Updated     time.Time // to the second; zero if the table does not say
}

// Read returns the rows, in the order of their tags, but those of the tags except,
// whatever they hold. An error names every mistake that it found: no such table,
// columns that are missing, NULL where a value must be, numbers that are none or out
// of bounds.
func Read(ctx context.Context, db *sql.DB, except ...string) ([]Row, error) {
	if err := foreign.Check(ctx, db, Table, "biz_tag", "max_id", "step", "description", "update_time"); err != nil {
		return nil, fmt.Errorf("leaf: %w", err)
	}
	var list []Row
	columns := []string{"biz_tag", "max_id", "step", "description", "UNIX_TIMESTAMP(update_time)"}
	err := foreign.Read(ctx, db, Table, "biz_tag", columns, func(r *foreign.Row) {
		if slices.Contains(except, r.Optional(0)) {
			return
		}
		row := Row{
			Tag: r.Name(0), MaxID: firn.ID(r.Whole(1, 0, math.MaxInt64)), Step: r.Whole(2, 1, math.MaxInt32),
			Description: r.Optional(3),
		}
		if seconds, err := strconv.ParseFloat(r.Optional(4), 64); err == nil && seconds > 0 {
			row.Updated = time.Unix(int64(seconds), 0).UTC()
		}
		list = append(list, row)
	})
	if err != nil {
		return nil, fmt.Errorf("leaf: %w", err)
	}
	return list, nil
}

// A Source is a [segment.Source] over the table. Its methods may be called
// concurrently.
//
// How many ids a range has follows [segment.Config.MinStep] and the demand, as
// Leaf's own adapt theirs; the row's step is left to the nodes.
type Source struct {
	// DB is the database that has the table. Required; the account needs SELECT
	// and UPDATE. Closing it is up to the caller.
	DB *sql.DB
	// Tags has the biz_tag of a name where it is another, as one that no name may
	// be. Names of one tag share its counter.
	Tags map[string]string
}

// Fetch implements [segment.Source]. A name without a row is an error that is
// [store.ErrNotFound], and one whose counter has reached the last id is
// [segment.ErrExhausted]. Why no id is granted twice: the row stays locked from the
// first look to the commit, the counter is seen to stand where the range ends, and
// the range is returned only after the commit was acknowledged. Where that answer
// was lost, the range is a gap.
func (s *Source) Fetch(ctx context.Context, name string, ask segment.Ask) (segment.Range, error) {
	tag, ok := s.Tags[name]
	if !ok {
		tag = name
	}
	r, err := s.fetch(ctx, tag, ask)
	if err != nil {
		return segment.Range{}, fmt.Errorf("leaf: fetch a range of %q: %w", tag, err)
	}
	return r, nil
}

func (s *Source) fetch(ctx context.Context, tag string, ask segment.Ask) (segment.Range, error) {
	switch {
	case s.DB == nil:
		return segment.Range{}, errors.New("Source.DB is required")
	case ask.Step < 1:
		return segment.Range{}, firn.NewRangeError("step", ask.Step, 1, math.MaxInt64, "")
	}
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return segment.Range{}, err
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after the commit
	stands, err := lock(ctx, tx, tag)
	if err != nil {
		return segment.Range{}, err
	}
	// Where the table was set back, above all that is held here. The last id of all
	// would have max_id pass 2^63.
	if ask.Above == firn.MaxID {
		return segment.Range{}, &segment.ExhaustedError{Name: tag, Next: uint64(firn.MaxID) + 1, Max: firn.MaxID - 1}
	}
	first := max(stands, int64(ask.Above)+1)
	count := min(ask.Step, math.MaxInt64-first)
	if count == 0 {
		return segment.Range{}, &segment.ExhaustedError{Name: tag, Next: uint64(first), Max: firn.MaxID - 1}
	}
	if err := move(ctx, tx, tag, stands, first+count); err != nil {
		return segment.Range{}, err
	}
	if err := tx.Commit(); err != nil {
		return segment.Range{}, err
	}
	return segment.Range{First: firn.ID(first), Count: count, Stride: 1}, nil
}

// lock returns where a counter stands, which nobody can move until tx has ended.
func lock(ctx context.Context, tx *sql.Tx, tag string) (stands int64, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT max_id FROM leaf_alloc WHERE biz_tag = ? FOR UPDATE", tag)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	count := 0
	for ; rows.Next(); count++ {
		if err := rows.Scan(&stands); err != nil {
			return 0, err
		}
	}
	switch {
	case rows.Err() != nil:
		return 0, rows.Err()
	case count == 0:
		return 0, fmt.Errorf("table %s has no row of that biz_tag: %w: insert one, or correct the name", Table, store.ErrNotFound)
	case count > 1: // nobody could tell which of them is the counter
		return 0, fmt.Errorf("table %s has %d rows of that biz_tag, 1 is allowed: make it the primary key", Table, count)
	case stands < 0:
		return 0, fmt.Errorf("table %s: %w", Table, firn.NewRangeError("max_id", stands, 0, math.MaxInt64, "ids are not negative"))
	}
	return stands, nil
}

// move moves a counter that is locked. It looks whether the counter is there then:
// a server that is not strict writes the greatest number that a column holds in
// the place of a greater one, again and again.
func move(ctx context.Context, tx *sql.Tx, tag string, from, to int64) error {
	if _, err := tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?", to-from, tag); err != nil {
		return err
	}
	var stands int64
	if err := tx.QueryRowContext(ctx, "SELECT max_id FROM leaf_alloc WHERE biz_tag = ?", tag).Scan(&stands); err != nil {
		return err
	}
	if stands != to {
		return fmt.Errorf("table %s: max_id is %d where %d was written: its column does not hold that, make it a BIGINT", Table, stands, to)
	}
	return nil
}
