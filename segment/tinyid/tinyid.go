// Package tinyid issues ids from the table tiny_id_info of a TinyId service:
// beside its running nodes, or after them.
//
//	s, err := segment.Open(segment.Config{Source: &tinyid.Source{DB: db}})
//	orders, err := s.Name("orders") // a biz_type
//
// [Source] moves the table's counters by the statements that TinyId's nodes use,
// so that both may issue at the same time: each has ranges of its own. [Read] and
// [ReadTokens] read the tables once, for taking them over into Firn; from then
// on the nodes must not run. The database is MySQL or MariaDB, by any driver.
//
// A commit counts once the server acknowledges it, as for TinyId's nodes: what a replica that is promoted
// does not have, is granted again. A primary whose semi-synchronous replication has given up waiting says
// yes all the same.
package tinyid

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/foreign"
	"github.com/firn-id/firn/internal/register"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// The tables that TinyId keeps counters and tokens in.
const (
	Table      = "tiny_id_info"
	TokenTable = "tiny_id_token"
)

const (
	// maxDelta is the greatest stride of a segment.
	maxDelta = 1 << 20
	// maxTries bounds how often a counter is read since others were quicker. The waits
	// between stay below the 10s that a segment gives a fetch.
	maxTries = 32
)

// A Row is a row of tiny_id_info.
type Row struct {
	ID      int64   // of the row
	Type    string  // biz_type
	BeginID firn.ID // where the counter began
	MaxID   firn.ID // ids up to this one are granted
	Step    int64   // how far a node moves the counter, whatever the delta
	// Delta and Remainder: the ids leave Remainder when divided by Delta.
	Delta, Remainder int64
	Version          int64
}

// Stripe returns which ids are those of the row.
func (r Row) Stripe() segment.Stripe { return segment.Stripe{Offset: r.Remainder, Stride: r.Delta} }

// columns are what a Row is read from, in its order.
var columns = []string{"id", "biz_type", "begin_id", "max_id", "step", "delta", "remainder", "version"}

// Read returns the rows, in the order of their types, but those of the types except,
// whatever they hold. An error names every mistake that it found: no such table,
// columns that are missing, NULL where a value must be, numbers that are none or out
// of bounds.
func Read(ctx context.Context, db *sql.DB, except ...string) ([]Row, error) {
	if err := foreign.Check(ctx, db, Table, columns...); err != nil {
		return nil, fmt.Errorf("tinyid: %w", err)
	}
	var list []Row
	err := foreign.Read(ctx, db, Table, "biz_type", columns, func(r *foreign.Row) {
		if !slices.Contains(except, r.Optional(1)) {
			list = append(list, readRow(r))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("tinyid: %w", err)
	}
	return list, nil
}

func readRow(r *foreign.Row) Row {
	row := Row{
		Type: r.Name(1), ID: r.Whole(0, 0, math.MaxInt64), BeginID: firn.ID(r.Whole(2, 0, math.MaxInt64)),
		MaxID: firn.ID(r.Whole(3, 0, math.MaxInt64)), Step: r.Whole(4, 1, math.MaxInt32),
		Delta: r.Whole(5, 1, maxDelta), Version: r.Whole(7, 0, math.MaxInt64),
	}
	row.Remainder = r.Whole(6, 0, max(row.Delta, 1)-1)
	return row
}

// A Token is a row of tiny_id_token. The token itself is not kept.
type Token struct {
	SHA256 [sha256.Size]byte // of the token
	Type   string            // the biz_type that it opens
}

// ReadTokens returns the tokens, in the order in which they were made, without
// empty ones, which TinyId never accepts. Errors are as those of Read, and repeat no
// token.
func ReadTokens(ctx context.Context, db *sql.DB) ([]Token, error) {
	if err := foreign.Check(ctx, db, TokenTable, "id", "token", "biz_type"); err != nil {
		return nil, fmt.Errorf("tinyid: %w", err)
	}
	var list []Token
	err := foreign.Read(ctx, db, TokenTable, "id", []string{"id", "token", "biz_type"}, func(r *foreign.Row) {
		r.Name(0)
		if token, of := r.Text(1), r.Text(2); token != "" {
			list = append(list, Token{SHA256: sha256.Sum256([]byte(token)), Type: of})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("tinyid: %w", err)
	}
	return list, nil
}

// A Source is a [segment.Source] over tiny_id_info. Its methods may be called
// concurrently.
//
// How many ids a range has follows [segment.Config.MinStep] and the demand; the
// row's step is left to the nodes. The row's delta and remainder are kept to.
type Source struct {
	// DB is the database that has the table. Required; the account needs SELECT
	// and UPDATE. Closing it is up to the caller.
	DB *sql.DB
	// Types has the biz_type of a name where it is another, as one that no name may
	// be. Names of one type share its counter.
	Types map[string]string
}

// Fetch implements [segment.Source]. A name without a row is an error that is
// [store.ErrNotFound]. Why no id is granted twice: the update is one statement that
// applies only to the row as it was read, whose version grows with each, the
// counter is seen to stand where the range ends, and the range is returned only after
// the commit was acknowledged. Where that answer was lost, the range is a gap. Where
// others were quicker each time, in 10s at most, that is [store.ErrUnavailable].
func (s *Source) Fetch(ctx context.Context, name string, ask segment.Ask) (segment.Range, error) {
	of, ok := s.Types[name]
	if !ok {
		of = name
	}
	r, err := s.fetch(ctx, of, ask)
	if err != nil {
		return segment.Range{}, fmt.Errorf("tinyid: fetch a range of %q: %w", of, err)
	}
	return r, nil
}

func (s *Source) fetch(ctx context.Context, of string, ask segment.Ask) (segment.Range, error) {
	switch {
	case s.DB == nil:
		return segment.Range{}, errors.New("Source.DB is required")
	case ask.Step < 1:
		return segment.Range{}, firn.NewRangeError("step", ask.Step, 1, math.MaxInt64, "")
	}
	// It waits between tries: the table is the nodes' too, who are not to be slowed by tries
	// in vain.
	for b := (register.Backoff{Time: firn.SystemTime(), Random: rand.Uint64}); ; {
		row, err := s.row(ctx, of)
		if err != nil {
			return segment.Range{}, err
		}
		grant, end, err := row.grant(ask)
		if err != nil {
			return segment.Range{}, err
		}
		// The row was read outside the transaction: that it may be older than the update
		// does no harm, since the update compares.
		moved, err := s.move(ctx, row, end)
		if err != nil {
			return segment.Range{}, err
		}
		if moved {
			return grant, nil
		}
		if err = b.Wait(ctx); err != nil || b.Tries == maxTries {
			return segment.Range{}, errors.Join(fmt.Errorf("%w: %d tries, others were quicker each time", store.ErrUnavailable, b.Tries), err)
		}
	}
}

// move moves the counter of a row, unless another has moved it since the row was
// read. It looks whether the counter is there then: a server that is not strict writes
// the greatest number that a column holds in the place of a greater one, again
// and again.
func (s *Source) move(ctx context.Context, row Row, to int64) (moved bool, err error) {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after the commit
	result, err := tx.ExecContext(ctx, "UPDATE tiny_id_info SET max_id = ?, update_time = now(), version = version + 1 "+
		"WHERE id = ? AND max_id = ? AND version = ? AND biz_type = ?", to, row.ID, int64(row.MaxID), row.Version, row.Type)
	if err != nil {
		return false, err
	}
	if changed, err := result.RowsAffected(); err != nil || changed != 1 {
		return false, err
	}
	var stands int64
	if err := tx.QueryRowContext(ctx, "SELECT max_id FROM tiny_id_info WHERE id = ?", row.ID).Scan(&stands); err != nil {
		return false, err
	}
	if stands != to {
		return false, fmt.Errorf("table %s: max_id is %d where %d was written: its column does not hold that, make it a BIGINT", Table, stands, to)
	}
	return true, tx.Commit()
}

// row reads the one row of a type.
func (s *Source) row(ctx context.Context, of string) (Row, error) {
	var found []Row
	err := foreign.Where(ctx, s.DB, Table, "biz_type", of, columns, func(r *foreign.Row) { found = append(found, readRow(r)) })
	switch {
	case err != nil:
		return Row{}, err
	case len(found) == 0:
		return Row{}, fmt.Errorf("table %s has no row of that biz_type: %w: insert one, or correct the name", Table, store.ErrNotFound)
	case len(found) > 1:
		return Row{}, fmt.Errorf("table %s has %d rows of that biz_type, 1 is allowed: make it a unique key", Table, len(found))
	}
	return found[0], nil
}

// grant returns the range that a row would give, and its max_id then. The ids
// from one above where it stands up to there are count times delta, so that
// count of them are of the stripe.
func (r Row) grant(ask segment.Ask) (grant segment.Range, end int64, err error) {
	from := max(int64(r.MaxID), int64(ask.Above)) // above what is held here, even if the table was set back
	count := min(ask.Step, (math.MaxInt64-from)/r.Delta)
	if count == 0 {
		return grant, 0, &segment.ExhaustedError{Name: r.Type, Next: uint64(from) + 1, Max: firn.MaxID}
	}
	first := from + 1
	first += (r.Remainder + r.Delta - first%r.Delta) % r.Delta // does not overflow: at most from + delta
	return segment.Range{First: firn.ID(first), Count: count, Stride: r.Delta}, from + count*r.Delta, nil
}
