// Package leaf issues ids from the table leaf_alloc of a Leaf segment service:
// beside its running nodes, or after them.
//
//	s, err := segment.New(segment.Config{Source: &leaf.Source{DB: db}})
//	orders, err := s.Namespace("orders") // a biz_tag
//
// [Source] locks a row and moves its counter by the statement that Leaf's nodes use, so
// that both may issue at the same time. [Read] reads the table once, to take its counters
// over into a store of Firn's; from then on the nodes must not run. The database is MySQL or
// MariaDB, by any driver.
//
// It relies on the table being InnoDB, as Leaf makes it, so that a rollback leaves no trace,
// and on biz_tag being its primary key. A commit counts once the server acknowledges it, as
// for Leaf's nodes: ranges that a promoted replica does not have are granted again. A primary
// acknowledges even when its semi-synchronous replication has given up waiting.
//
// Do not use it for a new system: [segment.Config.Store] needs no table of Leaf's. Once all nodes
// of Leaf have ended, take the counters over into a store.
package leaf

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/foreign"
	"github.com/firn-id/firn/segment"
)

// table is the table that Leaf keeps its counters in.
const table = "leaf_alloc"

// A Row is a row of the table.
type Row struct {
	Tag   string  // biz_tag
	MaxID firn.ID // where the next range begins: all ids below are granted
	Step  int64   // how many ids a node takes, unless it adapts that
}

// Read returns the rows in the order of their tags, except those of the tags in except. The
// error names every mistake found: a missing table or column, NULL where a value is required,
// text that is not a number, numbers out of bounds.
func Read(ctx context.Context, db *sql.DB, except ...string) ([]Row, error) {
	columns := []string{"biz_tag", "max_id", "step"}
	return foreign.List(ctx, db, "leaf", table, "biz_tag", columns, func(r *foreign.Row) (row Row, ok bool) {
		if slices.Contains(except, r.Optional(0)) {
			return row, false
		}
		return Row{Tag: r.Name(0), MaxID: firn.ID(r.Whole(1, 0, math.MaxInt64)), Step: r.Whole(2, 1, math.MaxInt32)}, true
	})
}

// A Source is a [segment.Source] over the table. Do not copy it. Its methods may be called concurrently. Use one Source for
// as long as the process runs: it grants nothing twice if the table is set back, whoever closes and opens the segments. How many
// ids a range has follows [segment.Config.MinStep] and the demand, as Leaf's own adapt theirs;
// the row's step is left to the nodes.
type Source struct {
	// DB is the database that has the table. Required; the account needs SELECT
	// and UPDATE. It is not closed.
	DB *sql.DB
	// Tags maps a name to its biz_tag if they differ, as for tags that are not valid names.
	// Names of one tag share its counter.
	Tags map[string]string

	highs foreign.Highs
}

// Fetch implements [segment.Source]. A name without a row is store.ErrNotFound, and one whose
// counter has reached the last id is [segment.ErrExhausted].
func (s *Source) Fetch(ctx context.Context, name string, ask segment.Ask) (segment.Range, error) {
	var stands int64
	counters := foreign.Counters{System: "leaf", Table: table, Key: "biz_tag", Columns: []string{"max_id"}, Highs: &s.highs}
	return counters.Move(ctx, s.DB, s.Tags, name, ask, func(r *foreign.Row) { stands = r.Whole(0, 0, math.MaxInt64) },
		func(tag string, ask segment.Ask) (foreign.Move, error) {
			if ask.Above == firn.MaxID { // the last id of all would have max_id pass 2^63
				return foreign.Move{}, &segment.ExhaustedError{Name: tag, Next: uint64(firn.MaxID) + 1, Max: firn.MaxID - 1}
			}
			first := max(stands, int64(ask.Above)+1)
			count := min(ask.Step, math.MaxInt64-first)
			if count == 0 {
				return foreign.Move{}, &segment.ExhaustedError{Name: tag, Next: uint64(first), Max: firn.MaxID - 1}
			}
			return foreign.Move{
				Grant: segment.Range{First: firn.ID(first), Count: count, Stride: 1},
				To:    first + count, Args: []any{first + count - stands, tag},
				Statement: "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?",
			}, nil
		})
}
