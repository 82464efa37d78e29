// Package tinyid issues ids from the table tiny_id_info of a TinyId service:
// beside its running nodes, or after them.
//
//	s, err := segment.New(segment.Config{Source: &tinyid.Source{DB: db}})
//	orders, err := s.Namespace("orders") // a biz_type
//
// [Source] locks a row and moves its counter by the statement that TinyId's nodes use, so
// that both may issue at the same time. [Read] and [ReadTokens] read the tables once, to take
// them over into Firn; from then on the nodes must not run. The database is MySQL or MariaDB,
// by any driver.
//
// It relies on the table being InnoDB, as TinyId makes it, so that a rollback leaves no trace.
// A commit counts once the server acknowledges it, as for TinyId's nodes: ranges that a promoted
// replica does not have are granted again. A primary acknowledges even when its semi-synchronous
// replication has given up waiting.
//
// Do not use it for a new system: [segment.Config.Store] needs no table of TinyId's. Once all
// nodes of TinyId have ended, take the counters over into a store.
package tinyid

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"math"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/foreign"
	"github.com/firn-id/firn/segment"
)

// The tables that TinyId keeps counters and tokens in.
const (
	table      = "tiny_id_info"
	tokenTable = "tiny_id_token"
)

// maxDelta is the greatest stride of a segment.
const maxDelta = 1 << 20

// A Row is a row of tiny_id_info.
type Row struct {
	ID    int64   // of the row
	Type  string  // biz_type
	MaxID firn.ID // ids up to this one are granted
	Step  int64   // how far a node moves the counter, whatever the delta
	// Delta and Remainder: the ids leave Remainder when divided by Delta.
	Delta, Remainder int64
	Version          int64
}

// Stripe returns the ids of the row.
func (r Row) Stripe() segment.Stripe { return segment.Stripe{Offset: r.Remainder, Stride: r.Delta} }

// columns are what a Row is read from, in its order.
var columns = []string{"id", "biz_type", "max_id", "step", "delta", "remainder", "version"}

// Read returns the rows in the order of their types, except those of the types in except. The
// error names every mistake found: a missing table or column, NULL where a value is required,
// text that is not a number, numbers out of bounds.
func Read(ctx context.Context, db *sql.DB, except ...string) ([]Row, error) {
	return foreign.List(ctx, db, "tinyid", table, "biz_type", columns, func(r *foreign.Row) (row Row, ok bool) {
		if slices.Contains(except, r.Optional(1)) {
			return row, false
		}
		return readRow(r), true
	})
}

func readRow(r *foreign.Row) Row {
	row := Row{
		Type: r.Name(1), ID: r.Whole(0, 0, math.MaxInt64), MaxID: firn.ID(r.Whole(2, 0, math.MaxInt64)),
		Step: r.Whole(3, 1, math.MaxInt32), Delta: r.Whole(4, 1, maxDelta), Version: r.Whole(6, 0, math.MaxInt64),
	}
	row.Remainder = r.Whole(5, 0, max(row.Delta, 1)-1)
	return row
}

// A Token is a row of tiny_id_token. The token itself is not kept.
type Token struct {
	SHA256 [sha256.Size]byte // of the token
	Type   string            // the biz_type that it opens
}

// ReadTokens returns the tokens in the order in which they were made, without empty ones, which
// TinyId never accepts. Errors are as those of Read, and repeat no token.
func ReadTokens(ctx context.Context, db *sql.DB) ([]Token, error) {
	return foreign.List(ctx, db, "tinyid", tokenTable, "id", []string{"id", "token", "biz_type"}, func(r *foreign.Row) (Token, bool) {
		r.Name(0)
		token, of := r.Text(1), r.Text(2)
		return Token{SHA256: sha256.Sum256([]byte(token)), Type: of}, token != ""
	})
}

// A Source is a [segment.Source] over tiny_id_info. Do not copy it. Its methods may be called concurrently. Use one Source for
// as long as the process runs: it grants nothing twice if the table is set back, whoever closes and opens the segments. How
// many ids a range has follows [segment.Config.MinStep] and the demand; the row's step is left
// to the nodes. It keeps to the row's delta and remainder.
type Source struct {
	// DB is the database that has the table. Required; the account needs SELECT
	// and UPDATE. It is not closed.
	DB *sql.DB
	// Types maps a name to its biz_type if they differ, as for types that are not valid names.
	// Names of one type share its counter.
	Types map[string]string

	highs foreign.Highs
}

// Fetch implements [segment.Source]. A name without a row is store.ErrNotFound, and one whose
// counter has reached the last id is [segment.ErrExhausted].
func (s *Source) Fetch(ctx context.Context, name string, ask segment.Ask) (segment.Range, error) {
	var row Row
	counters := foreign.Counters{System: "tinyid", Table: table, Key: "biz_type", Columns: columns, Highs: &s.highs}
	return counters.Move(ctx, s.DB, s.Types, name, ask, func(r *foreign.Row) { row = readRow(r) },
		func(_ string, ask segment.Ask) (move foreign.Move, err error) {
			move.Grant, move.To, err = row.grant(ask)
			move.Statement = "UPDATE tiny_id_info SET max_id = ?, update_time = now(), version = version + 1 " +
				"WHERE id = ? AND max_id = ? AND version = ? AND biz_type = ?"
			move.Args = []any{move.To, row.ID, int64(row.MaxID), row.Version, row.Type}
			return move, err
		})
}

// grant returns the range that a row would give, and its max_id afterwards: count times delta
// higher, so that count ids of the stripe lie between.
func (r Row) grant(ask segment.Ask) (grant segment.Range, end int64, err error) {
	from := max(int64(r.MaxID), int64(ask.Above))
	count := min(ask.Step, (math.MaxInt64-from)/r.Delta)
	if count == 0 {
		return grant, 0, &segment.ExhaustedError{Name: r.Type, Next: uint64(from) + 1, Max: firn.MaxID}
	}
	first := from + 1
	first += (r.Remainder + r.Delta - first%r.Delta) % r.Delta // does not overflow: at most from + delta
	return segment.Range{First: firn.ID(first), Count: count, Stride: r.Delta}, from + count*r.Delta, nil
}
