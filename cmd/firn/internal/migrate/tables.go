package migrate

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/leaf"
	"github.com/firn-id/firn/segment/tinyid"
)

// The tables that have the counters.
const (
	leafTable   = "leaf_alloc"
	tinyidTable = "tiny_id_info"
)

// FromLeaf reads Leaf's counters, except those named in except.
func FromLeaf(ctx context.Context, db *sql.DB, except ...string) ([]Foreign, []Token, error) {
	rows, err := leaf.Read(ctx, db, except...)
	if err != nil {
		return nil, nil, err
	}
	if err := have(ctx, db, leafTable, "biz_tag", except); err != nil {
		return nil, nil, err
	}
	var list []Foreign
	for _, r := range rows {
		list = append(list, Foreign{Name: r.Tag, MaxID: r.MaxID, Next: int64(r.MaxID), Step: r.Step, Stripe: segment.Stripe{Stride: 1}})
	}
	return list, nil, empty(leafTable, len(list))
}

// FromTinyID reads TinyId's counters and tokens, except the counters named in except.
func FromTinyID(ctx context.Context, db *sql.DB, except ...string) ([]Foreign, []Token, error) {
	rows, err := tinyid.Read(ctx, db, except...)
	if err != nil {
		return nil, nil, err
	}
	if err := have(ctx, db, tinyidTable, "biz_type", except); err != nil {
		return nil, nil, err
	}
	var list []Foreign
	for _, r := range rows {
		f := Foreign{Name: r.Type, MaxID: r.MaxID, Next: -1, Step: r.Step, Stripe: r.Stripe()}
		if r.MaxID < math.MaxInt64 {
			f.Next = int64(r.MaxID) + 1 // max_id itself is already granted
		}
		list = append(list, f)
	}
	if err := empty(tinyidTable, len(list)); err != nil {
		return nil, nil, err
	}
	read, err := tinyid.ReadTokens(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	var tokens []Token
	at := map[string]int{}
	for _, t := range read {
		sum := hex.EncodeToString(t.SHA256[:])
		i, known := at[sum]
		if !known {
			i = len(tokens)
			at[sum] = i
			tokens = append(tokens, Token{SHA256: sum})
		}
		if !slices.Contains(tokens[i].Of, t.Type) {
			tokens[i].Of = append(tokens[i].Of, t.Type)
		}
	}
	return list, tokens, nil
}

// have returns an error for each of names that has no row in table. Names are compared as Read does, not by the
// collation of the column, for which Orders may be orders.
func have(ctx context.Context, db *sql.DB, table, column string, names []string) error {
	var errs []error
	for _, name := range names {
		var found string
		err := db.QueryRowContext(ctx, "SELECT "+column+" FROM "+table+" WHERE "+column+" = ?", name).Scan(&found)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			errs = append(errs, fmt.Errorf("--skip %q: table %s has no such row", name, table))
		case err != nil:
			return err
		case found != name:
			errs = append(errs, fmt.Errorf("--skip %q: table %s has no such row, but %q", name, table, found))
		}
	}
	return errors.Join(errs...)
}

func empty(table string, rows int) error {
	if rows == 0 {
		return fmt.Errorf("table %s has no row to import", table)
	}
	return nil
}
