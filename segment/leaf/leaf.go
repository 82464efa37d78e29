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
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/foreign"
	"github.com/firn-id/firn/segment"
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
// store.ErrNotFound, and one whose counter has reached the last id is
// [segment.ErrExhausted].
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
	if ask.Step < 1 {
		return segment.Range{}, firn.NewRangeError("step", ask.Step, 1, math.MaxInt64, "")
	}
	var stands int64
	counter, err := foreign.Lock(ctx, s.DB, Table, "biz_tag", tag, []string{"max_id"}, func(r *foreign.Row) { stands = r.Whole(0, 0, math.MaxInt64) })
	if err != nil {
		return segment.Range{}, err
	}
	defer counter.Unlock()
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
	if err := counter.Move(ctx, first+count, "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?", first+count-stands, tag); err != nil {
		return segment.Range{}, err
	}
	return segment.Range{First: firn.ID(first), Count: count, Stride: 1}, nil
}
