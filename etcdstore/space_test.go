package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A member checks its quota before it proposes a write, and again when it applies it. A write that
// fails only the second check is applied, and gets the same error.
func TestAWriteThatMeetsTheEndOfTheQuotaIsLeftOpen(t *testing.T) {
	t.Parallel()
	s := open(t, "etcd://"+servers.Etcd(t, "--quota-backend-bytes", "2097152").Addr())
	value := make([]byte, 16<<10)
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		failed = map[string]error{}
	)
	for w := range 64 {
		group.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("k/%d/%d", w, i)
				if _, err := s.CompareAndSwap(context.Background(), key, 0, value); err != nil {
					mu.Lock()
					failed[key] = err
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	applied := 0
	for key, err := range failed {
		expect(t, key, err, store.ErrUnavailable, "quota")
		switch _, getErr := s.Get(context.Background(), key); {
		case errors.Is(getErr, store.ErrNotFound):
		case getErr != nil:
			t.Error(getErr)
		case store.Unapplied(err):
			t.Errorf("%s was applied: %v", key, err)
		default:
			applied++
		}
	}
	t.Logf("%d of %d writes that failed were applied", applied, len(failed))
}
