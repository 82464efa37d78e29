package issuing_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// awayStore can be away, and says where it was looked for.
type awayStore struct {
	*memstore.Store
	away atomic.Bool
}

func (s *awayStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Revision, error) {
	if s.away.Load() {
		return 0, fmt.Errorf("%w: dial tcp 10.1.2.3:6379: connection refused", store.ErrUnavailable)
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

// Readiness is shown to everyone: where the store stands is in the log, and with the state of
// the namespaces for those who may see it.
func TestReadinessDoesNotSayWhereTheStoreIs(t *testing.T) {
	st := &awayStore{Store: memstore.New(nil)}
	s := opened(t, st, "namespaces: {orders: {window: 100ms}}")
	st.away.Store(true)
	err := s.Ready()
	for ; err == nil; err = s.Ready() { // until the fence has passed
		runtime.Gosched()
	}
	if !strings.Contains(err.Error(), "pool default: the fence of worker") || strings.Contains(err.Error(), "10.1.2.3") {
		t.Error(err)
	}
	if code := failure.Of(err).Code; code != "not_ready" {
		t.Errorf("%s: %v", code, err)
	}
	st.away.Store(false)
}

// Clients return to a server that cannot issue from one pool, and not to one that is about to end.
func TestReadinessTellsTheEndFromAPoolThatCannotIssue(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {orders: {}}")
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
	s.Drain()
	if f := failure.Of(s.Ready()); f.Status != 503 || f.Code != "shutting_down" || f.Retry == 0 {
		t.Errorf("%+v", f)
	}
}
