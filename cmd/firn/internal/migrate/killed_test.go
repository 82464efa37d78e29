package migrate_test

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/leaf"
	"github.com/firn-id/firn/segment/tinyid"
	"github.com/firn-id/firn/store/storetest/servers"
)

// Processes of Firn and nodes of the other system fetch ranges while the database is killed
// repeatedly, also between a commit and its answer. A failed fetch may leave a gap, but never a
// duplicate.
func TestRangesAreUniqueWhileTheDatabaseIsKilled(t *testing.T) {
	t.Parallel()
	server := servers.MariaDB(t)
	run(t, openDatabase(t, server, ""), "CREATE DATABASE live")
	db := openDatabase(t, server, "live")
	run(t, db, leafDDL, leafRow, infoDDL, infoRows, "UPDATE tiny_id_info SET step = 20")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		callers sync.WaitGroup
		mu      sync.Mutex
		seen    = map[string]map[firn.ID]bool{"leaf-segment-test": {}, "test_odd": {}}
		failed  int
		made    = map[string]int{"leaf-segment-test": 0, "test_odd": 0}
		more    = sync.NewCond(&mu)
	)
	note := func(name string, ids []firn.ID, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed++
			return
		}
		for _, id := range ids {
			if seen[name][id] {
				t.Errorf("%d of %s was issued twice", id, name)
			}
			seen[name][id] = true
		}
		made[name] += len(ids)
		more.Broadcast()
	}
	// wait returns once each name has got so many more ids.
	wait := func(ids int) {
		mu.Lock()
		defer mu.Unlock()
		for name, from := range maps.Clone(made) {
			for made[name] < from+ids {
				more.Wait()
			}
		}
	}
	for name, source := range map[string]segment.Source{"leaf-segment-test": &leaf.Source{DB: db}, "test_odd": &tinyid.Source{DB: db}} {
		for range 3 {
			callers.Go(func() {
				for ctx.Err() == nil {
					r, err := source.Fetch(ctx, name, segment.Ask{Step: 10, Above: -1})
					note(name, r.AppendTo(nil), err)
				}
			})
		}
		callers.Go(func() {
			for ctx.Err() == nil {
				if name == "test_odd" {
					ids, err := tinyNode(ctx, db, name)
					note(name, ids, err)
				} else {
					ids, err := leafNode(ctx, db)
					note(name, ids, err)
				}
			}
		})
	}
	for range 3 {
		wait(2000)
		server.Kill()
		server.Restart()
	}
	wait(2000) // fetching continues after the last restart
	cancel()
	callers.Wait()
	if failed == 0 {
		t.Error("no fetch failed, so this proves nothing")
	}
	t.Logf("%v ids, %d failures", made, failed)
}
