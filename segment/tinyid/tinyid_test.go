package tinyid_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/tinyid"
	"github.com/firn-id/firn/store"
)

// unlocked is a database whose one counter a node moves on between a look and the update,
// as far, and whose commits may fail.
type unlocked struct {
	driver.Conn // for what no test calls
	meanwhile   bool
	commit      error
	maxID       int64
}

func (c *unlocked) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c *unlocked) Driver() driver.Driver                        { return nil }
func (c *unlocked) Close() error                                 { return nil }
func (c *unlocked) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return c, nil
}
func (c *unlocked) Commit() error   { return c.commit }
func (c *unlocked) Rollback() error { return nil }

// QueryContext implements [driver.QueryerContext].
func (c *unlocked) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if !strings.HasSuffix(query, " FOR UPDATE") {
		return &row{columns: []string{"max_id"}, cells: []driver.Value{c.maxID}}, nil
	}
	return &row{
		columns: []string{"id", "biz_type", "max_id", "step", "delta", "remainder", "version"},
		cells:   []driver.Value{int64(1), "orders", c.maxID, int64(100), int64(1), int64(0), int64(1)},
	}, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *unlocked) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	c.maxID, _ = args[0].Value.(int64)
	if c.meanwhile {
		return driver.RowsAffected(0), nil
	}
	return driver.RowsAffected(1), nil
}

type row struct {
	columns []string
	cells   []driver.Value
}

func (r *row) Columns() []string { return r.columns }
func (r *row) Close() error      { return nil }
func (r *row) Next(into []driver.Value) error {
	if r.cells == nil {
		return io.EOF
	}
	copy(into, r.cells)
	r.cells = nil
	return nil
}

func TestARangeIsGrantedByItsOwnCommitAlone(t *testing.T) {
	broken := errors.New("the server has gone away")
	for _, c := range []struct {
		db   *unlocked
		want error
	}{
		{&unlocked{maxID: 100}, nil},
		{&unlocked{maxID: 100, commit: broken}, broken},
		{&unlocked{maxID: 100, meanwhile: true}, store.ErrUnavailable},
	} {
		db := sql.OpenDB(c.db)
		r, err := (&tinyid.Source{DB: db}).Fetch(t.Context(), "orders", segment.Ask{Step: 10, Above: -1})
		want := segment.Range{First: 101, Count: 10, Stride: 1}
		if c.want != nil {
			want = segment.Range{}
		}
		if !errors.Is(err, c.want) || r != want {
			t.Errorf("%v, %v, want %v, %v", r, err, want, c.want)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
