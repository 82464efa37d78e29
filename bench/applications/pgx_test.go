package applications_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/storetest/servers"
)

// copyOrders inserts any number of orders by COPY.
func copyOrders(ctx context.Context, db *pgx.Conn, ids IDs, orders []Order) error {
	if err := fillKeys(ctx, ids, orders); err != nil {
		return err
	}
	_, err := db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "what"},
		pgx.CopyFromSlice(len(orders), func(i int) ([]any, error) { return []any{orders[i].ID, orders[i].What}, nil }))
	return err
}

// addWithLines inserts an order and its lines in one round trip. The lines name the order, whose id is known before.
func addWithLines(ctx context.Context, db *pgx.Conn, ids IDs, what string, lines ...string) (firn.ID, error) {
	keys := make([]firn.ID, 1+len(lines))
	if _, err := ids.Fill(ctx, keys); err != nil {
		return 0, err
	}
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO orders (id, what) VALUES ($1, $2)`, keys[0], what)
	for i, line := range lines {
		batch.Queue(`INSERT INTO lines (id, order_id, what) VALUES ($1, $2, $3)`, keys[1+i], keys[0], line)
	}
	return keys[0], db.SendBatch(ctx, batch).Close()
}

// find returns the orders that exist of those, in order.
func find(ctx context.Context, db *pgx.Conn, of []firn.ID) ([]Order, error) {
	rows, err := db.Query(ctx, `SELECT id, what FROM orders WHERE id = ANY($1) ORDER BY id`, of)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Order])
}

// onPostgres connects to a new PostgreSQL with empty tables.
func onPostgres(t *testing.T) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), "postgres://postgres@"+servers.Postgres(t).Addr()+"/postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	if _, err := db.Exec(t.Context(), `CREATE TABLE orders (id BIGINT PRIMARY KEY, what TEXT NOT NULL);
		CREATE TABLE lines (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL REFERENCES orders (id), what TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestPgx(t *testing.T) {
	db := onPostgres(t)
	t.Run("copies, batches and finds", func(t *testing.T) { insertWithPgx(t, db) })
	t.Run("takes an id as a number and reads texts", func(t *testing.T) { pageOfPgx(t, db) })
}

func insertWithPgx(t *testing.T, db *pgx.Conn) {
	t.Helper()
	ids := generator(t)
	orders := []Order{{What: "first"}, {What: "second"}, {What: "third"}}
	if err := copyOrders(t.Context(), db, ids, orders); err != nil {
		t.Fatal(err)
	}
	found, err := find(t.Context(), db, []firn.ID{orders[2].ID, orders[0].ID, 7})
	if want := []Order{orders[0], orders[2]}; err != nil || !slices.Equal(found, want) {
		t.Errorf("found %v (%v), want %v", found, err, want)
	}
	id, err := addWithLines(t.Context(), db, ids, "tea", "a pot", "two cups")
	if err != nil {
		t.Fatal(err)
	}
	var lines int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM lines JOIN orders ON orders.id = order_id WHERE order_id = $1`, id).Scan(&lines); err != nil || lines != 2 {
		t.Errorf("%d lines (%v)", lines, err)
	}
	if _, err := addWithLines(t.Context(), db, again{7}, "cut off", "a line", "one with the same key"); err == nil || !strings.Contains(err.Error(), "23505") {
		t.Errorf("a key that is there already: %v", err)
	}
	if found, err := find(t.Context(), db, []firn.ID{7}); err != nil || len(found) > 0 {
		t.Errorf("of a batch that failed there is %v (%v)", found, err)
	}
	_, err = db.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"id", "what"}, pgx.CopyFromRows([][]any{{Key{}, "x"}}))
	if err == nil || !strings.Contains(err.Error(), "the primary key is empty") {
		t.Errorf("an empty key: %v", err)
	}
}

// again makes one id, again and again.
type again struct{ id firn.ID }

func (a again) Next(context.Context) (firn.ID, error) { return a.id, nil }

func (a again) Fill(_ context.Context, ids []firn.ID) (int, error) {
	for i := range ids {
		ids[i] = a.id
	}
	return len(ids), nil
}

// pageOfPgx asserts what the page says of columns and modes.
func pageOfPgx(t *testing.T, db *pgx.Conn) {
	t.Helper()
	const id firn.ID = 249828105990142472
	shows := func(what, sql, want string, args ...any) {
		t.Helper()
		var got string
		if err := db.QueryRow(t.Context(), sql, args...).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %s (%v), want %s", what, got, err, want)
		}
	}
	shows("text of an id", `SELECT $1::text`, "249828105990142472", id.String())
	shows("an id in a JSON document", `SELECT $1::jsonb`, `{"id": "249828105990142472", "what": "tea"}`, Order{id, "tea"})
	shows("an id alone as JSON", `SELECT $1::jsonb`, `249828105990142472`, id)
	var text string
	if err := db.QueryRow(t.Context(), `SELECT $1::text`, id).Scan(&text); err == nil || !strings.Contains(err.Error(), "cannot find encode plan") {
		t.Errorf("an id for text is %q (%v): the page says that it is refused", text, err)
	}

	var read firn.ID
	if err := db.QueryRow(t.Context(), `SELECT '249828105990142472'::text`).Scan(&read); err != nil || read != id {
		t.Errorf("read from text: %d (%v)", read, err)
	}
	for _, document := range []string{`{"id": 249828105990142472}`, `{"id": "249828105990142472"}`} {
		var order Order
		if err := db.QueryRow(t.Context(), `SELECT $1::jsonb`, document).Scan(&order); err != nil || order.ID != id {
			t.Errorf("read from JSON: %v (%v)", order, err)
		}
	}
	var pointer *firn.ID
	var null sql.Null[firn.ID]
	if err := db.QueryRow(t.Context(), `SELECT NULL::bigint, NULL::bigint`).Scan(&pointer, &null); err != nil || pointer != nil || null.Valid {
		t.Errorf("NULL: %v, %v (%v)", pointer, null, err)
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		if err := db.QueryRow(t.Context(), `SELECT $1::bigint`, mode, id).Scan(&read); err != nil || read != id {
			t.Errorf("%v: %d (%v)", mode, read, err)
		}
		if err := db.QueryRow(t.Context(), `SELECT 7 = ANY($1::bigint[])`, mode, []firn.ID{id}).Scan(new(bool)); err == nil {
			t.Errorf("%v takes a list: the page says that it is refused", mode)
		}
		if err := db.QueryRow(t.Context(), `SELECT 7 = ANY($1::bigint[])`, mode, []int64{int64(id)}).Scan(new(bool)); err != nil {
			t.Errorf("%v: a list of int64: %v", mode, err)
		}
	}
}
