package sql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

func TestTheTableCanBeCreatedConcurrently(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		for round := range 10 {
			source := e.source(e.admin(), e.fresh(t, fmt.Sprint("empty", round)), "")
			begin := make(chan struct{})
			var group sync.WaitGroup
			for range 16 {
				group.Go(func() {
					<-begin
					if err := e.try(source); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			close(begin)
			group.Wait()
		}
	})
}

// While the table is missing, the store is unavailable to its writers, and no call is refused. Opening
// another store creates an empty table, which the writers then use.
func TestWritersUseATableThatIsDroppedAndRecreated(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		ctx := context.Background()
		name := e.fresh(t, "dropped")
		s := e.mustOpen(t, e.source(e.admin(), name, ""))
		var stop atomic.Bool
		var written, wiped atomic.Int64
		var group sync.WaitGroup
		defer group.Wait()
		defer stop.Store(true)
		for w := range 6 {
			group.Go(func() {
				key := fmt.Sprint("k", w)
				var revision store.Revision
				for !stop.Load() {
					next, err := s.CompareAndSwap(ctx, key, revision, []byte("v"))
					switch {
					case err == nil:
						written.Add(1)
						revision = next.Revision
					case errors.Is(err, store.ErrConflict):
						wiped.Add(1)
						revision = 0
						if e, err := s.Get(ctx, key); err == nil {
							revision = e.Revision // from a write with an unknown outcome
						}
					case store.Unapplied(err):
						t.Errorf("write: %v", err)
						return
					default: // the table vanished, perhaps during the write
						wiped.Add(1)
						revision = 0
					}
				}
			})
		}
		for range 5 {
			first := written.Load()
			until(t, "writes to be lost", func() bool { return written.Load() >= first+50 })
			before := wiped.Load()
			e.raw(t, name, "DROP TABLE IF EXISTS "+sqlstore.Table)
			until(t, "the writers to notice", func() bool { return wiped.Load() > before })
			e.mustOpen(t, e.source(e.admin(), name, "")) // creates the table
		}
		stop.Store(true)
		group.Wait()
		if _, err := s.List(ctx, ""); err != nil {
			t.Errorf("list in the end: %v", err)
		}
	})
}

// Ending connections must neither lose nor repeat a write.
func TestConnectionsEndedByTheServerLoseNoWrite(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name := e.fresh(t, "ended")
		s := e.mustOpen(t, e.source(e.admin(), name, ""))
		var stop atomic.Bool
		var acknowledged, open atomic.Int64
		var group sync.WaitGroup
		defer group.Wait()
		defer stop.Store(true)
		for range 4 {
			group.Go(func() {
				for !stop.Load() {
					got, err := s.Get(context.Background(), "counter")
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						if !errors.Is(err, store.ErrUnavailable) {
							t.Errorf("get: %v", err)
						}
						continue
					}
					// One byte more for each write that was applied.
					_, err = s.CompareAndSwap(context.Background(), "counter", got.Revision, append(got.Value, 'x'))
					switch {
					case err == nil:
						acknowledged.Add(1)
					case errors.Is(err, store.ErrConflict):
					case store.Unapplied(err):
						t.Errorf("write: %v", err)
					default:
						open.Add(1)
					}
				}
			})
		}
		admin := e.connect(t, e.source(e.admin(), "", ""))
		for range 10 {
			before := acknowledged.Load()
			until(t, "writes", func() bool { return acknowledged.Load() >= before+20 })
			rows, err := admin.Query(map[string]string{
				"mysql": "SELECT id FROM information_schema.processlist WHERE db = 'ended'",
				"pgx":   "SELECT pid FROM pg_stat_activity WHERE datname = 'ended'",
			}[e.driver])
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for rows.Next() {
				var id int64
				if err := rows.Scan(&id); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			for _, id := range ids {
				end := map[string]string{"mysql": "KILL %d", "pgx": "SELECT pg_terminate_backend(%d)"}[e.driver]
				_, _ = admin.Exec(fmt.Sprintf(end, id)) // the connection may have ended already
			}
		}
		stop.Store(true)
		group.Wait()
		got, err := s.Get(context.Background(), "counter")
		for range 20 { // connections that were ended while idle
			if err == nil {
				break
			}
			got, err = s.Get(context.Background(), "counter")
		}
		if n := int64(len(got.Value)); err != nil || n < acknowledged.Load() || n > acknowledged.Load()+open.Load() {
			t.Errorf("%d writes were applied (%v), %d acknowledged, and %d had an unknown outcome", n, err, acknowledged.Load(), open.Load())
		}
	})
}

func TestTheServersClockIsCloseToOurs(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		// The result does not depend on the session's time zone.
		setting := map[string]string{"mysql": "time_zone=%27%2B09%3A00%27", "pgx": "timezone=Asia/Tokyo"}[e.driver]
		s := e.mustOpen(t, e.source(e.admin(), e.fresh(t, "clock"), setting))
		var last time.Time
		for range 50 {
			before := time.Now()
			now, err := s.Traits().Clock.Now(context.Background())
			if err != nil || now.Before(before.Add(-50*time.Millisecond)) || now.After(time.Now().Add(50*time.Millisecond)) {
				t.Fatalf("the server's clock reads %v at %v, %v", now, before, err)
			}
			if !now.After(last) {
				t.Fatalf("%v after %v: the clock lacks microseconds", now, last)
			}
			last = now
		}
	})
}
