package etcdstore_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/leasing"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A client with leases on keys, such as a grpc-proxy with a leasing prefix, caches every key that is
// read through it. After an older copy was restored, a holder would find its slot in that cache.
func TestNoReadIsAnsweredFromAProxysCache(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	server := servers.Etcd(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	kv, end, err := leasing.NewKV(client, "leases/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	client.KV = kv
	s, err := etcdstore.OpenClient(ctx, client, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	first, err := s.CompareAndSwap(ctx, "k", 0, []byte("older"))
	if err != nil {
		t.Fatal(err)
	}
	operator := raw(t, server, "", "")
	older, err := operator.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareAndSwap(ctx, "k", first.Revision, []byte("newer")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second read comes from the cache
		if _, err := kv.Get(ctx, "k"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := operator.Put(ctx, "k", string(older.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	e, err := s.Get(ctx, "k")
	if err != nil || string(e.Value) != "older" {
		t.Fatalf("%+v, %v; want what the server has", e, err)
	}
	if _, err := s.CompareAndSwap(ctx, "k", e.Revision, []byte("newest")); err != nil {
		t.Errorf("a write over what the server has: %v", err)
	}
}
