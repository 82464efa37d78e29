package etcdstore

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// A refusal of another call may end a call that was applied. etcd's errors are distinguished by their
// text, and the reason contains such a text as well.
func TestACallThatAnotherCallsErrorEndedIsLeftOpen(t *testing.T) {
	calls := backend.NewCalls("etcdstore", backend.NewLanes(0), classify)
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := backend.Do(ctx, calls, "compare-and-swap", "k", func(ctx context.Context) (struct{}, error) {
		cancel(calls.Wrap("get", "another", rpctypes.ErrPermissionDenied))
		<-ctx.Done()
		return struct{}{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || store.Unapplied(err) {
		t.Errorf("%v, want it to be left open", err)
	}
}
