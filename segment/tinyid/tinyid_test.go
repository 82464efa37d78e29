package tinyid_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/tinyid"
	"github.com/firn-id/firn/store"
)

// contended is a database whose one counter a node moves on before each update, so
// many times.
type contended struct {
	driver.Conn // for what nobody calls
	times       int
	tries       []time.Time // when the counter was read
	maxID       int64
}

func (c *contended) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c *contended) Driver() driver.Driver                        { return nil }
func (c *contended) Close() error                                 { return nil }
func (c *contended) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return c, nil
}
func (c *contended) Commit() error   { return nil }
func (c *contended) Rollback() error { return nil }

// QueryContext implements [driver.QueryerContext].
func (c *contended) QueryContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Rows, error) {
	if _, whole := args[0].Value.(int64); whole {
		return &row{columns: []string{"max_id"}, cells: []driver.Value{c.maxID}}, nil
	}
	c.tries = append(c.tries, time.Now())
	return &row{
		columns: []string{"id", "biz_type", "begin_id", "max_id", "step", "delta", "remainder", "version"},
		cells:   []driver.Value{int64(1), "orders", int64(1), c.maxID, int64(100), int64(1), int64(0), int64(1)},
	}, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *contended) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	if len(c.tries) <= c.times {
		c.maxID += 100
		return driver.RowsAffected(0), nil
	}
	c.maxID, _ = args[0].Value.(int64)
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

// fetch has a source fetch a range of ten in the contended database.
func fetch(ctx context.Context, t *testing.T, c *contended) (segment.Range, error) {
	t.Helper()
	db := sql.OpenDB(c)
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	return (&tinyid.Source{DB: db}).Fetch(ctx, "orders", segment.Ask{Step: 10, Above: -1})
}

func TestTriesKeepADistanceThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &contended{times: 9}
		r, err := fetch(t.Context(), t, c)
		if err != nil || r.First != 901 || r.Count != 10 || len(c.tries) != 10 {
			t.Fatalf("%v, %v after %d tries", r, err, len(c.tries))
		}
		mean := 2 * time.Millisecond
		for i := range 9 {
			if d := c.tries[i+1].Sub(c.tries[i]); d < mean/2 || d >= mean*3/2 {
				t.Errorf("%v between try %d and the next, want about %v", d, i, mean)
			}
			mean = min(2*mean, 250*time.Millisecond)
		}
	})
}

func TestTheFirstTryDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if r, err := fetch(t.Context(), t, &contended{}); err != nil || r.First != 1 || time.Since(began) > 0 {
			t.Errorf("%v, %v after %v", r, err, time.Since(began))
		}
	})
}

func TestTriesEndBeforeASegmentGivesTheFetchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := fetch(t.Context(), t, &contended{times: 1000})
		if took := time.Since(began); !errors.Is(err, store.ErrUnavailable) || took < time.Second || took > 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestTriesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := fetch(ctx, t, &contended{times: 1000})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}
