package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/storetest/servers"
)

// poolers are the modes of PgBouncer in which a store works.
var poolers = []string{"transaction", "session"}

// pooled is a PostgreSQL behind a pooler.
func pooled(t *testing.T, mode string, args ...string) (behind, direct engine) {
	t.Helper()
	direct = postgres(t, args...)
	behind = direct
	behind.Server = servers.PgBouncer(t, direct.Server, mode)
	return behind, direct
}

// The driver makes no prepared statements, as the package comment of sqlstore advises.
const unprepared = "default_query_exec_mode=exec"

func TestConformanceBehindAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range poolers {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			behind, _ := pooled(t, mode)
			storetest.Run(t, behind.factory(unprepared, false))
		})
	}
}

// The session that a write returns from is not the one that the next statement gets.
func TestManyWritersShareTheSessionsOfAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range poolers {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			behind, direct := pooled(t, mode)
			name := direct.fresh(t, "shop")
			s := behind.warned(t, name, unprepared)
			const writers, writes = 8, 20
			var group sync.WaitGroup
			for w := range writers {
				group.Go(func() {
					for n := 0; n < writes; {
						old, err := s.Get(context.Background(), "k")
						if err != nil && !errors.Is(err, store.ErrNotFound) {
							t.Errorf("writer %d: %v", w, err)
							return
						}
						_, err = s.CompareAndSwap(context.Background(), "k", old.Revision, append(old.Value, '.'))
						switch {
						case err == nil:
							n++
						case !errors.Is(err, store.ErrConflict):
							t.Errorf("writer %d: %v", w, err)
							return
						}
					}
				})
			}
			group.Wait()
			got, err := direct.mustOpen(t, direct.source(direct.admin(), name, "")).Get(context.Background(), "k")
			if err != nil || len(got.Value) != writers*writes {
				t.Errorf("%d of %d writes are there, %v", len(got.Value), writers*writes, err)
			}
		})
	}
}

// In transaction mode a statement that was prepared on one session is executed on another, or prepared twice on one.
func TestADriverThatPreparesStatementsBehindAPoolerIsToldNotTo(t *testing.T) {
	t.Parallel()
	behind, direct := pooled(t, "transaction")
	name := direct.fresh(t, "shop")
	direct.warned(t, name, "") // the table exists: making it at the same time would fail in another way
	source := behind.source(behind.admin(), name, "")
	refused := false
	until(t, "a prepared statement to be missing", func() bool {
		var group sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			group.Go(func() { errs[i] = behind.try(source) })
		}
		group.Wait()
		for _, err := range errs {
			if err == nil {
				continue
			}
			if strings.Contains(err.Error(), "applied and not confirmed") { // the statement that asks was missing
				expect(t, "a prepared statement", err, store.ErrUnavailable, "QueryExecModeExec")
				continue
			}
			expect(t, "a prepared statement", err, store.ErrRefused, "QueryExecModeExec")
			refused = true
		}
		return refused
	})
}

// A transaction that another client of the pooler leaves open is not ours.
func TestAWriteBehindAPoolerWaitsForNoOtherClientsTransaction(t *testing.T) {
	t.Parallel()
	for _, mode := range poolers {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			behind, direct := pooled(t, mode)
			name := direct.fresh(t, "shop")
			s := behind.warned(t, name, unprepared)
			other, err := behind.connect(t, behind.source(behind.admin(), name, unprepared)).Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Exec("INSERT INTO " + sqlstore.Table + " VALUES ('other', '', 1)"); err != nil {
				t.Fatal(err)
			}
			revision := put(t, s, "k", 0, "v")
			if err := other.Rollback(); err != nil {
				t.Fatal(err)
			}
			put(t, s, "k", revision, "w")
		})
	}
}

// A pooler's own errors do not say which setting is to blame.
func TestASettingThatAPoolerDoesNotPassOnIsNamed(t *testing.T) {
	t.Parallel()
	behind, direct := pooled(t, "transaction")
	name := direct.fresh(t, "shop")
	for _, setting := range []string{"search_path=public", "statement_timeout=5000", "options=-csearch_path%3Dpublic"} {
		_, err := behind.open(behind.source(behind.admin(), name, unprepared+"&"+setting))
		expect(t, setting, err, store.ErrRefused, "unsupported startup parameter", "ALTER ROLE firn SET search_path")
	}
	for _, setting := range []string{"colour=red", "work_mem=none"} {
		_, err := direct.open(direct.source(direct.admin(), name, setting))
		expect(t, setting, err, store.ErrRefused, "the server does not know a setting of the URL")
	}
}

// What the pooler advises: the schema of the account.
func TestTheSchemaOfAnAccountIsUsedBehindAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range poolers {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			behind, direct := pooled(t, mode)
			name := direct.fresh(t, "shop")
			direct.raw(t, name, "CREATE SCHEMA own", "ALTER ROLE postgres SET search_path = own")
			put(t, behind.mustOpen(t, behind.source(behind.admin(), name, unprepared)), "k", 0, "v")
			direct.raw(t, name, "SELECT k FROM own.firn_registers")
		})
	}
}

// A synchronous standby that is away stops writes, whoever hands the sessions on.
func TestAWriteBehindAPoolerThatNoStandbyHasIsUnconfirmed(t *testing.T) {
	t.Parallel()
	for _, mode := range poolers {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			behind, direct := pooled(t, mode)
			name := direct.fresh(t, "shop")
			s := behind.warned(t, name, unprepared)
			revision := put(t, s, "k", 0, "before there were standbys")
			direct.raw(t, "", "ALTER SYSTEM SET synchronous_standby_names = 'away'", "ALTER SYSTEM SET synchronous_commit = 'local'", "SELECT pg_reload_conf()")
			until(t, "the server to wait for standbys", func() bool {
				var names string
				err := direct.connect(t, direct.source(direct.admin(), name, "")).QueryRow("SELECT setting FROM pg_settings WHERE name = 'synchronous_standby_names'").Scan(&names)
				return err == nil && names == "away"
			})
			_, err := direct.cutShort(t, s, "k", revision, "without a standby", "pg_cancel_backend")
			expect(t, fmt.Sprint("in mode ", mode), err, store.ErrUnavailable, "not confirmed")
		})
	}
}
