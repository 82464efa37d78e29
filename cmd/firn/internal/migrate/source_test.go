package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/leaf"
	"github.com/firn-id/firn/segment/tinyid"
	"github.com/firn-id/firn/store"
)

func TestLiveSources(t *testing.T) {
	t.Parallel()
	fresh := tables(t)

	t.Run("leaf begins at max_id", func(t *testing.T) {
		db := fresh(t, leafDDL, leafRow)
		want(t, &leaf.Source{DB: db}, "leaf-segment-test", segment.Ask{Step: 1000, Above: -1}, "1 to 1000")
		want(t, &leaf.Source{DB: db}, "leaf-segment-test", segment.Ask{Step: 500, Above: 1000}, "1001 to 1500")
		want(t, &leaf.Source{DB: db}, "leaf-segment-test", segment.Ask{Step: 5, Above: 5000}, "5001 to 5005") // set back
		want(t, &leaf.Source{DB: db, Tags: map[string]string{"x": "leaf-segment-test"}}, "x", segment.Ask{Step: 1, Above: -1}, "5006 to 5006")
		at(t, db, "SELECT max_id FROM leaf_alloc", 5007)
		at(t, db, "SELECT step FROM leaf_alloc", 2000)
	})

	t.Run("tinyid keeps to delta and remainder", func(t *testing.T) {
		db := fresh(t, infoDDL, infoRows)
		s := &tinyid.Source{DB: db}
		want(t, s, "test", segment.Ask{Step: 1000, Above: -1}, "2 to 1001")
		want(t, s, "test", segment.Ask{Step: 10, Above: 1001}, "1002 to 1011")
		want(t, s, "test_odd", segment.Ask{Step: 1000, Above: -1}, "3 to 2001 by 2")
		at(t, db, "SELECT max_id FROM tiny_id_info WHERE id = 2", 2001)
		at(t, db, "SELECT version FROM tiny_id_info WHERE id = 2", 4)
		want(t, s, "test_odd", segment.Ask{Step: 2, Above: 5000}, "5001 to 5003 by 2")
		run(t, db, "UPDATE tiny_id_info SET delta = 5, remainder = 0, max_id = 9223372036854775802 WHERE id = 1")
		want(t, s, "test", segment.Ask{Step: 10, Above: -1}, "9223372036854775805 to 9223372036854775805")
		if _, err := s.Fetch(t.Context(), "test", segment.Ask{Step: 10, Above: -1}); !errors.Is(err, segment.ErrExhausted) {
			t.Errorf("above the last id: %v", err)
		}
	})

	// The names are opened again, or share a counter: the source alone knows what was granted.
	t.Run("a table that was set back", func(t *testing.T) {
		db := fresh(t, leafDDL, leafRow, infoDDL, infoRows)
		of := &leaf.Source{DB: db, Tags: map[string]string{"x": "leaf-segment-test"}}
		want(t, of, "leaf-segment-test", segment.Ask{Step: 1000, Above: -1}, "1 to 1000")
		run(t, db, "UPDATE leaf_alloc SET max_id = 1")
		want(t, of, "x", segment.Ask{Step: 10, Above: -1}, "1001 to 1010")
		ids := &tinyid.Source{DB: db, Types: map[string]string{"x": "test"}}
		want(t, ids, "test", segment.Ask{Step: 1000, Above: -1}, "2 to 1001")
		run(t, db, "UPDATE tiny_id_info SET max_id = 1")
		want(t, ids, "x", segment.Ask{Step: 10, Above: -1}, "1002 to 1011")
	})

	t.Run("bad names, steps and rows are refused", func(t *testing.T) {
		db := fresh(t, leafDDL, infoDDL, `INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('last', 9223372036854775800, 1), ('below', -5, 1)`,
			`INSERT INTO tiny_id_info (biz_type, delta, step) VALUES ('none', 0, 1)`)
		for _, s := range []segment.Source{&leaf.Source{DB: db}, &tinyid.Source{DB: db}} {
			_, err := s.Fetch(t.Context(), "nosuch", segment.Ask{Step: 1, Above: -1})
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an unknown name: %v", err)
			}
			says(t, "an unknown name", err, `"nosuch"`, "insert one")
			if _, err := s.Fetch(t.Context(), "last", segment.Ask{Above: -1}); !errors.Is(err, firn.ErrRange) {
				t.Errorf("no step: %v", err)
			}
		}
		_, err := (&leaf.Source{DB: db}).Fetch(t.Context(), "last", segment.Ask{Step: 1, Above: firn.MaxID})
		says(t, "above the last id", err, "exhausted")
		_, err = (&leaf.Source{DB: db}).Fetch(t.Context(), "below", segment.Ask{Step: 2, Above: -1})
		says(t, "a negative counter", err, "max_id -5 is out of range")
		at(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'below'", -5)
		_, err = (&tinyid.Source{DB: db}).Fetch(t.Context(), "none", segment.Ask{Step: 2, Above: -1})
		says(t, "a delta of 0", err, "delta 0 is out of range")
		if _, err := (&leaf.Source{}).Fetch(t.Context(), "x", segment.Ask{Step: 1}); err == nil {
			t.Error("leaf without a database: no error")
		}
		if _, err := (&tinyid.Source{}).Fetch(t.Context(), "x", segment.Ask{Step: 1}); err == nil {
			t.Error("tinyid without a database: no error")
		}
		db = fresh(t, `CREATE TABLE leaf_alloc (biz_tag varchar(9), max_id bigint, step int) ENGINE=InnoDB`,
			`INSERT INTO leaf_alloc VALUES ('two', 1, 1), ('two', 500, 1)`)
		_, err = (&leaf.Source{DB: db}).Fetch(t.Context(), "two", segment.Ask{Step: 2, Above: -1})
		says(t, "two rows", err, "2 rows with that biz_tag")
		at(t, db, "SELECT sum(max_id) FROM leaf_alloc", 501)
	})

	t.Run("a lost answer is an error, and its range is a gap", func(t *testing.T) {
		db := fresh(t, leafDDL, leafRow, infoDDL, infoRows)
		lost := sql.OpenDB(&losing{db: db})
		defer lost.Close()
		for range 3 {
			for name, s := range map[string]segment.Source{"leaf-segment-test": &leaf.Source{DB: lost}, "test": &tinyid.Source{DB: lost}} {
				if r, err := s.Fetch(t.Context(), name, segment.Ask{Step: 100, Above: -1}); !errors.Is(err, errLost) || r.Count != 0 {
					t.Errorf("%v, %v", r, err)
				}
			}
		}
		want(t, &leaf.Source{DB: db}, "leaf-segment-test", segment.Ask{Step: 100, Above: -1}, "301 to 400")
		want(t, &tinyid.Source{DB: db}, "test", segment.Ask{Step: 100, Above: -1}, "302 to 401")
	})

	t.Run("side by side with leaf", func(t *testing.T) {
		db := fresh(t, leafDDL, leafRow)
		sideBySide(t, &leaf.Source{DB: db}, "leaf-segment-test", 1, func(ctx context.Context) ([]firn.ID, error) { return leafNode(ctx, db) })
	})
	t.Run("side by side with tinyid", func(t *testing.T) {
		db := fresh(t, infoDDL, infoRows)
		run(t, db, "UPDATE tiny_id_info SET step = 200")
		sideBySide(t, &tinyid.Source{DB: db}, "test_odd", 2, func(ctx context.Context) ([]firn.ID, error) { return tinyNode(ctx, db, "test_odd") })
	})
}

func want(t *testing.T, s segment.Source, name string, ask segment.Ask, ids string) {
	t.Helper()
	r, err := s.Fetch(t.Context(), name, ask)
	if got := r.String(); err != nil || got != ids && (r.Count != 1 || fmt.Sprintf("%d to %d", r.First, r.First) != ids) {
		t.Errorf("%+v returned %s, %v, want %s", ask, got, err, ids)
	}
}

func at(t *testing.T, db *sql.DB, query string, want int64) {
	t.Helper()
	var have int64
	if err := db.QueryRow(query).Scan(&have); err != nil || have != want {
		t.Errorf("%s: %d, %v, want %d", query, have, err, want)
	}
}

// sideBySide lets processes of Firn and nodes of the other system issue concurrently.
func sideBySide(t *testing.T, source segment.Source, name string, stride firn.ID, node func(context.Context) ([]firn.ID, error)) {
	t.Helper()
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		all   []firn.ID
	)
	add := func(ids []firn.ID, err error) {
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		all = append(all, ids...)
		mu.Unlock()
	}
	for range 3 {
		group.Go(func() {
			for range 60 {
				add(node(t.Context()))
			}
		})
		group.Go(func() {
			s, err := segment.New(segment.Config{Source: source, MinStep: 100, MaxStep: 100})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			n, err := s.Namespace(name)
			if err != nil {
				t.Error(err)
				return
			}
			for range 60 {
				ids := make([]firn.ID, 100)
				if _, err := n.Fill(t.Context(), ids); err != nil {
					t.Error(err)
					return
				}
				if !slices.IsSorted(ids) {
					t.Error("ids decreased")
				}
				add(ids, nil)
			}
		})
	}
	group.Wait()
	slices.Sort(all)
	for i, id := range all {
		if i > 0 && id == all[i-1] {
			t.Fatalf("%d was issued twice", id)
		}
		if id%stride != stride-1 {
			t.Fatalf("%d is outside the stripe", id)
		}
	}
	t.Logf("%d ids, no duplicate", len(all))
}

// leafNode fetches a range as Leaf does.
func leafNode(ctx context.Context, db *sql.DB) ([]firn.ID, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", "leaf-segment-test"); err != nil {
		return nil, err
	}
	var tag string
	var end, step firn.ID
	if err := tx.QueryRowContext(ctx, "SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?", "leaf-segment-test").Scan(&tag, &end, &step); err != nil {
		return nil, err
	}
	var ids []firn.ID
	for id := end - step; id < end; id++ {
		ids = append(ids, id)
	}
	return ids, tx.Commit()
}

// tinyNode fetches a range as TinyId does, except that it does not give up after three conflicts.
func tinyNode(ctx context.Context, db *sql.DB, name string) ([]firn.ID, error) {
	for {
		var row, version, step, delta, remainder, from int64
		err := db.QueryRowContext(ctx, "select id, max_id, step, delta, remainder, version from tiny_id_info where biz_type = ?", name).
			Scan(&row, &from, &step, &delta, &remainder, &version)
		if err != nil {
			return nil, err
		}
		result, err := db.ExecContext(ctx, "update tiny_id_info set max_id=?, update_time=now(), version=version+1 where id=? and max_id=? and version=? and biz_type=?",
			from+step, row, from, version, name)
		if err != nil {
			return nil, err
		}
		if changed, err := result.RowsAffected(); err != nil || changed == 0 {
			continue
		}
		var ids []firn.ID
		for id := from + 1; id <= from+step; id++ {
			if id%delta == remainder {
				ids = append(ids, firn.ID(id))
			}
		}
		return ids, nil
	}
}

var errLost = errors.New("the answer was lost")

// losing is a driver that forwards to a database, and loses the answer of every commit and of
// every write outside a transaction.
type losing struct{ db *sql.DB }

func (l *losing) Driver() driver.Driver { return l.db.Driver() }

func (l *losing) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &losingConn{c: c}, nil
}

type losingConn struct {
	c  *sql.Conn
	tx *sql.Tx
}

func (c *losingConn) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("Prepare is not supported")
}
func (c *losingConn) Close() error              { return c.c.Close() }
func (c *losingConn) Begin() (driver.Tx, error) { return nil, errors.New("Begin is not supported") }

func (c *losingConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	var err error
	c.tx, err = c.c.BeginTx(ctx, nil)
	return c, err
}

func (c *losingConn) Commit() error {
	err := c.tx.Commit()
	c.tx = nil
	return errors.Join(errLost, err)
}

func (c *losingConn) Rollback() error {
	err := c.tx.Rollback()
	c.tx = nil
	return err
}

func values(args []driver.NamedValue) (list []any) {
	for _, a := range args {
		list = append(list, a.Value)
	}
	return list
}

func (c *losingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.tx != nil {
		return c.tx.ExecContext(ctx, query, values(args)...)
	}
	_, err := c.c.ExecContext(ctx, query, values(args)...)
	return nil, errors.Join(errLost, err)
}

func (c *losingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	var rows *sql.Rows
	var err error
	if c.tx != nil {
		rows, err = c.tx.QueryContext(ctx, query, values(args)...)
	} else {
		rows, err = c.c.QueryContext(ctx, query, values(args)...)
	}
	if err != nil {
		return nil, err
	}
	return losingRows{rows}, nil
}

type losingRows struct{ *sql.Rows }

func (r losingRows) Columns() []string { names, _ := r.Rows.Columns(); return names }

func (r losingRows) Next(into []driver.Value) error {
	if !r.Rows.Next() {
		if err := r.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	cells := make([]any, len(into))
	for i := range into {
		cells[i] = &into[i]
	}
	return r.Scan(cells...)
}
