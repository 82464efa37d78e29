package sql

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest"
)

// factory makes stores in databases of their own, through a driver with these settings.
func (e engine) factory(settings string, outages bool) storetest.Factory {
	names := map[store.Store]string{}
	made := 0
	open := func(t *testing.T, name string) store.Store {
		s, err := e.open(e.source(e.admin(), name, settings))
		if err != nil {
			t.Fatal(err)
		}
		names[s] = name
		return s
	}
	f := storetest.Factory{
		Open: func(t *testing.T) store.Store {
			made++
			return open(t, e.fresh(t, fmt.Sprintf("t%d_%d", made, time.Now().UnixNano())))
		},
		Another: func(t *testing.T, s store.Store) store.Store { return open(t, names[s]) },
		Delete: func(t *testing.T, s store.Store, key string) {
			db := e.connect(t, e.source(e.admin(), names[s], settings))
			if _, err := db.Exec("DELETE FROM "+sqlstore.Table+" WHERE k = "+e.key, key); err != nil {
				t.Fatal(err)
			}
		},
	}
	if outages {
		f.Restart = func(*testing.T, store.Store) {
			e.Kill()
			e.Restart()
		}
		f.Pause = func(t *testing.T, s store.Store) func() {
			e.Pause()
			silent(t, s)
			return e.Resume
		}
	}
	return f
}

// silent waits until a paused server no longer answers: its threads stop one by one.
func silent(t *testing.T, s store.Store) {
	t.Helper()
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_, err := s.Get(ctx, "k")
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
	}
	t.Fatal("a paused server still answers")
}

// TestConformance runs the suite with a driver's defaults, outages included, and with each setting
// that changes how statements and answers are sent or how much a statement sees of concurrent writers.
func TestConformance(t *testing.T) {
	settings := map[string][]string{
		"mysql": {
			"", "interpolateParams=true", "clientFoundRows=true", "charset=utf8mb3", "charset=latin1&interpolateParams=true",
			"tx_isolation=%27SERIALIZABLE%27", "tx_isolation=%27SERIALIZABLE%27&innodb_snapshot_isolation=1", "sql_mode=%27ANSI%2CNO_BACKSLASH_ESCAPES%27&interpolateParams=true",
		},
		"pgx": {
			"", "default_query_exec_mode=exec", "default_query_exec_mode=simple_protocol",
			"default_transaction_isolation=serializable", "default_transaction_isolation=repeatable%20read",
		},
	}
	both(t, func(t *testing.T, e engine) {
		for _, setting := range settings[e.driver] {
			t.Run(setting, func(t *testing.T) {
				storetest.Run(t, e.factory(setting, setting == ""))
			})
		}
	})
}
