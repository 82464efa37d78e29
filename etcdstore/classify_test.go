package etcdstore

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

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

// One prefix is one store, whoever writes it: a URL puts the slash at its end.
func TestAPrefixEndsWithASlash(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for prefix, want := range map[string]error{
		"": context.Canceled, "shop/": context.Canceled, "a/b/": context.Canceled,
		"shop": store.ErrRefused, "/": store.ErrRefused, "/shop/": store.ErrRefused, "a//b/": store.ErrRefused, "a\n/": store.ErrRefused,
	} {
		if _, err := OpenClient(ended, client, prefix); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", prefix, err, want)
		}
	}
}
