package applications_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
)

// IDs is what the application needs of Firn. Generators, leases, segments, sequences and the client of
// a server all have these methods.
type IDs interface {
	Next(ctx context.Context) (firn.ID, error)
	Fill(ctx context.Context, ids []firn.ID) (int, error)
}

var _ = []IDs{
	(*firn.Generator)(nil), (*lease.Lease)(nil), (*segment.Namespace)(nil), (*sequence.Namespace)(nil), (*client.Namespace[firn.ID])(nil),
}

// An Order is a row.
type Order struct {
	ID   firn.ID `json:"id" db:"id"`
	What string  `json:"what" db:"what"`
}

// Orders keeps orders in a database.
type Orders struct {
	db  *sql.DB
	ids IDs
}

func NewOrders(db *sql.DB, ids IDs) *Orders { return &Orders{db, ids} }

// Add inserts an order. Its id is known before the insert, so other rows can name it at once.
func (o *Orders) Add(ctx context.Context, what string) (Order, error) {
	id, err := o.ids.Next(ctx)
	if err != nil {
		return Order{}, err
	}
	_, err = o.db.ExecContext(ctx, `INSERT INTO orders (id, what) VALUES (?, ?)`, id, what)
	return Order{id, what}, err
}

// fillKeys gives each order an id, all in one call. Fill may return fewer than asked for, with an error.
func fillKeys(ctx context.Context, ids IDs, orders []Order) error {
	keys := make([]firn.ID, len(orders))
	if _, err := ids.Fill(ctx, keys); err != nil {
		return err
	}
	for i := range orders {
		orders[i].ID = keys[i]
	}
	return nil
}

// AddAll inserts orders in one statement.
func (o *Orders) AddAll(ctx context.Context, orders []Order) error {
	if err := fillKeys(ctx, o.ids, orders); err != nil {
		return err
	}
	rows := strings.TrimSuffix(strings.Repeat("(?, ?),", len(orders)), ",")
	args := make([]any, 0, 2*len(orders))
	for _, order := range orders {
		args = append(args, order.ID, order.What)
	}
	_, err := o.db.ExecContext(ctx, `INSERT INTO orders (id, what) VALUES `+rows, args...)
	return err
}

// Find reads an order.
func (o *Orders) Find(ctx context.Context, id firn.ID) (order Order, err error) {
	err = o.db.QueryRowContext(ctx, `SELECT id, what FROM orders WHERE id = ?`, id).Scan(&order.ID, &order.What)
	return order, err
}

// database returns a database with a table orders, and the path of its file.
func database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+"?_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE orders (id BIGINT PRIMARY KEY, what TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return db
}

// generator returns ids of a fixed worker. An application would take a lease.
func generator(t *testing.T) *firn.Generator {
	t.Helper()
	g, err := firn.New(7, firn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// stored returns the ids in a table, by which it is sorted, and checks that Firn's generator made them
// just now.
func stored(t *testing.T, db *sql.DB, table string, count int) []firn.ID {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT id FROM `+table+` ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []firn.ID
	for rows.Next() {
		var id firn.ID
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		p, err := firn.DefaultLayout().Decompose(id)
		if err != nil || p.Worker != 7 {
			t.Errorf("%s has the id %d of worker %d: %v", table, id, p.Worker, err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(ids) != count {
		t.Fatalf("%s has the ids %v, want %d", table, ids, count)
	}
	return ids
}

func TestAKeyIsFilledBeforeTheInsert(t *testing.T) {
	db := database(t)
	orders := NewOrders(db, generator(t))
	first, err := orders.Add(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	batch := []Order{{What: "second"}, {What: "third"}}
	if err := orders.AddAll(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if ids, want := stored(t, db, "orders", 3), []firn.ID{first.ID, batch[0].ID, batch[1].ID}; !slices.Equal(ids, want) {
		t.Errorf("the table has %v, in memory are %v", ids, want)
	}
	if found, err := orders.Find(t.Context(), batch[1].ID); err != nil || found != batch[1] {
		t.Errorf("found %v (%v), want %v", found, err, batch[1])
	}
}

// failing has no ids.
type failing struct{ IDs }

func (failing) Next(context.Context) (firn.ID, error)        { return 0, firn.ErrFence }
func (failing) Fill(context.Context, []firn.ID) (int, error) { return 0, firn.ErrFence }

func TestWithoutAnIDNothingIsInserted(t *testing.T) {
	db := database(t)
	orders := NewOrders(db, failing{})
	if _, err := orders.Add(t.Context(), "x"); !errors.Is(err, firn.ErrFence) {
		t.Errorf("error %v", err)
	}
	if err := orders.AddAll(t.Context(), make([]Order, 2)); !errors.Is(err, firn.ErrFence) {
		t.Errorf("error %v", err)
	}
	stored(t, db, "orders", 0)
}
