package etcdstore

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/firn-id/firn/store"
)

// A call that ends since another was refused may have been applied. etcd's errors are
// told apart by their text, which the reason has as well.
func TestACallThatOthersEndedIsLeftOpen(t *testing.T) {
	s := &Store{}
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err := call(ctx, s, func(context.Context) (struct{}, error) {
		cancel(s.wrap("get", "another", rpctypes.ErrPermissionDenied))
		return struct{}{}, errors.New("canceled on the way")
	})
	if err = s.wrap("compare-and-swap", "k", err); !errors.Is(err, context.Canceled) || store.Unapplied(err) {
		t.Errorf("%v, want it to be left open", err)
	}
}
