package sqlstore_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/firn-id/firn/store/sqlstore"
)

// The program imports the driver, here modernc.org/sqlite. The settings keep what was confirmed when power
// fails, and have writers wait for each other.
func ExampleOpen() {
	db, err := sql.Open("sqlite", "file:/var/lib/shop/firn.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		log.Fatal(err)
	}
	s, err := sqlstore.Open(context.Background(), db, sqlstore.SQLite) // the first time: sqlstore.Create
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close() // closes db too
}
