package etcdstore_test

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/etcdstore"
)

// The package has the verbs of docs/decisions/0011.
var (
	_ func(ctx context.Context, url string) (*etcdstore.Store, error)                        = etcdstore.Open
	_ func(ctx context.Context, c *clientv3.Client, prefix string) (*etcdstore.Store, error) = etcdstore.OpenClient
)
