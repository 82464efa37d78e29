package sqltest

import (
	"context"
	"testing"

	"github.com/firn-id/firn/store"
)

// Without autocommit a write would be acknowledged, seen by nobody else and
// gone with its connection.
func TestAMySQLSessionThatDoesNotCommitIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	e.mustOpen(t, e.source("root", name, "")) // makes the table
	_, err := e.open(e.source("root", name, "autocommit=0"))
	expect(t, "by the driver's setting", err, store.ErrRefused, "autocommit=1")
	e.raw(t, "", "SET GLOBAL autocommit = 0")
	_, err = e.open(e.source("root", name, ""))
	expect(t, "by the server's", err, store.ErrRefused, "autocommit=1")
	s := e.mustOpen(t, e.source("root", name, "autocommit=1"))
	put(t, s, "k", 0, "v")
	if _, err := e.mustOpen(t, e.source("root", name, "autocommit=1")).Get(context.Background(), "k"); err != nil {
		t.Errorf("what the setting overrules: %v", err)
	}
}

// What is not committed yet may still be undone, by a crash for one; whoever
// reads a write back would take it for done.
func TestAMySQLSessionThatReadsWhatIsNotCommittedIsRefused(t *testing.T) {
	t.Parallel()
	e := mariadb(t)
	name := e.fresh(t, "shop")
	_, err := e.open(e.source("root", name, "tx_isolation=%27READ-UNCOMMITTED%27"))
	expect(t, "by the driver's setting", err, store.ErrRefused, "READ-COMMITTED")
	e.raw(t, "", "SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	_, err = e.open(e.source("root", name, ""))
	expect(t, "by the server's", err, store.ErrRefused, "READ-COMMITTED")
	put(t, e.mustOpen(t, e.source("root", name, "tx_isolation=%27READ-COMMITTED%27")), "k", 0, "v")
}
