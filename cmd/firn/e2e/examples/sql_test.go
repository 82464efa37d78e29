package examples_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/sqlstore"
)

// A primary key generated before the row is written, with a worker leased from the same database.
func Example_primaryKey() {
	if err := primaryKey(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// "first" "second"
	// a key is never NULL here: true
}

func primaryKey(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "firn")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "app.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	store, err := sqlstore.Create(ctx, db, sqlstore.SQLite)
	if err != nil {
		return err
	}
	defer store.Close() // and db with it
	l, err := lease.Open(ctx, lease.Config{Store: store})
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))

	if _, err := db.ExecContext(ctx, `CREATE TABLE orders (id BIGINT PRIMARY KEY, what TEXT NOT NULL)`); err != nil {
		return err
	}
	for _, what := range []string{"first", "second"} {
		id, err := l.Next(ctx)
		if err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, `INSERT INTO orders (id, what) VALUES (?, ?)`, id, what); err != nil {
			return err
		}
	}
	rows, err := db.QueryContext(ctx, `SELECT id, what FROM orders ORDER BY id`) // ids sort by time
	if err != nil {
		return err
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var id firn.ID
		var what string
		if err := rows.Scan(&id, &what); err != nil {
			return err
		}
		found = append(found, fmt.Sprintf("%q", what))
	}
	fmt.Println(found[0], found[1])
	var id sql.Null[firn.ID]
	if err := db.QueryRowContext(ctx, `SELECT min(id) FROM orders`).Scan(&id); err != nil {
		return err
	}
	fmt.Println("a key is never NULL here:", id.Valid)
	return rows.Err()
}
