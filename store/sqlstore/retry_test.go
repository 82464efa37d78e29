package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// Some drivers call a connection bad that ended while they waited for an answer
// (lib/pq, on EOF). The write was made, and what the second try is told is no
// answer to the first.
func TestABadConnectionMakesLaterRefusalsUncertain(t *testing.T) {
	for _, test := range []struct {
		what string
		then error
	}{{"a conflict", nil}, {"a server that is read-only by now", state("25006")}} {
		tries := 0
		s, err := sqlstore.New(context.Background(), sql.OpenDB(scripted{one, func(statement string) (oneRow, error) {
			if !strings.HasPrefix(statement, "UPDATE") {
				return nil, nil
			}
			if tries++; tries == 1 {
				return nil, driver.ErrBadConn
			}
			return nil, test.then
		}}), sqlstore.Postgres)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(context.Background(), "k", 1, nil)
		if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || tries != 2 {
			t.Errorf("%s after a bad connection: %v after %d tries, want it to be left open", test.what, err, tries)
		}
	}
}

// A proxy may hand each statement to another session, or to one that was reset.
func TestAWriteDoesNotLookForASessionForEver(t *testing.T) {
	tries := 0
	s, err := sqlstore.New(context.Background(), sql.OpenDB(scripted{func(context.Context, string) (int64, error) {
		if tries++; tries > 100 {
			return 0, errors.New("for ever")
		}
		return 0, nil
	}, func(statement string) (oneRow, error) {
		if strings.Contains(statement, "@firn_life :=") {
			return oneRow{int64(0), "fit", "", "life", false, false, int64(0), false}, nil
		}
		return nil, nil
	}}), sqlstore.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CompareAndSwap(context.Background(), "k", 1, nil)
	if tries > 100 || !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || !strings.Contains(err.Error(), "session") {
		t.Errorf("%v after %d tries", err, tries)
	}
}
