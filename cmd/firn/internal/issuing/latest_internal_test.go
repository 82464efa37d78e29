package issuing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A listedStore counts its lists.
type listedStore struct {
	store.Store
	lists int
}

func (*listedStore) Traits() store.Traits { return store.Traits{} }

func (s *listedStore) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	s.lists++
	return s.Store.List(ctx, prefix)
}

func TestOneReadingOfAPoolServesAllWhoAskUntilItIsOldOrAWorkerIsReleased(t *testing.T) {
	mem := memstore.New(nil)
	for _, pool := range []string{"default", "other"} {
		l, err := lease.Open(t.Context(), lease.Config{Store: mem, Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
	}
	synctest.Test(t, func(t *testing.T) {
		st := &listedStore{Store: mem}
		var latest latestSlots
		asked := func(pool string, lists int) {
			t.Helper()
			text, err := latest.of(t.Context(), st, pool)
			if err != nil || len(text) == 0 || st.lists != lists {
				t.Fatalf("%s: %s, %v after %d lists, want %d", pool, text, err, st.lists, lists)
			}
		}
		asked("default", 1)
		time.Sleep(slotsLast - 1)
		asked("default", 1)
		time.Sleep(time.Nanosecond)
		asked("default", 2)
		asked("other", 3)
		time.Sleep(time.Nanosecond)
		began := time.Now()
		time.Sleep(time.Nanosecond)
		latest.keep(time.Now(), "other", nil) // as a release does
		latest.keep(began, "other", []byte("read before it"))
		asked("other", 4)
	})
}
