package applications_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/firn-id/firn"
)

// addNamed inserts orders in one statement of sqlx, which expands VALUES for a slice.
func addNamed(ctx context.Context, db *sqlx.DB, ids IDs, orders []Order) error {
	if err := fillKeys(ctx, ids, orders); err != nil {
		return err
	}
	_, err := db.NamedExecContext(ctx, `INSERT INTO orders (id, what) VALUES (:id, :what)`, orders)
	return err
}

func TestSqlxInsertsABatch(t *testing.T) {
	db := sqlx.NewDb(database(t), "sqlite")
	orders := []Order{{What: "first"}, {What: "second"}, {What: "third"}}
	if err := addNamed(t.Context(), db, generator(t), orders); err != nil {
		t.Fatal(err)
	}
	var found []Order
	if err := db.SelectContext(t.Context(), &found, `SELECT id, what FROM orders ORDER BY id`); err != nil || !slices.Equal(found, orders) {
		t.Errorf("found %v (%v), want %v", found, err, orders)
	}
	query, args, err := sqlx.In(`SELECT what FROM orders WHERE id IN (?)`, []firn.ID{orders[0].ID, orders[2].ID})
	if err != nil {
		t.Fatal(err)
	}
	var what []string
	if err := db.SelectContext(t.Context(), &what, query+` ORDER BY id`, args...); err != nil || !slices.Equal(what, []string{"first", "third"}) {
		t.Errorf("found %v (%v)", what, err)
	}
	stored(t, db.DB, "orders", 3)
}
