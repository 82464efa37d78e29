package leaf_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
)

// openTable returns a database with a row of leaf_alloc, whose counter stands at next.
func openTable(next int64) *sql.DB { return sql.OpenDB(&table{next: next}) }

// A table is a database whose only value is one counter.
type table struct {
	driver.Conn // for what no test calls
	next        int64
}

func (t *table) Connect(context.Context) (driver.Conn, error)                 { return t, nil }
func (t *table) Driver() driver.Driver                                        { return nil }
func (t *table) Close() error                                                 { return nil }
func (t *table) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return t, nil }
func (t *table) Commit() error                                                { return nil }
func (t *table) Rollback() error                                              { return nil }
func (t *table) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &rows{next: t.next}, nil
}

// ExecContext moves the counter by the first argument of the UPDATE.
func (t *table) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	step, ok := args[0].Value.(int64)
	if !ok {
		return nil, driver.ErrSkip
	}
	t.next += step
	return driver.RowsAffected(1), nil
}

// rows are one row with the counter.
type rows struct {
	next int64
	read bool
}

func (r *rows) Columns() []string { return []string{"max_id"} }
func (r *rows) Close() error      { return nil }
func (r *rows) Next(into []driver.Value) error {
	if r.read {
		return io.EOF
	}
	into[0], r.read = r.next, true
	return nil
}
