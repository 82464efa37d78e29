package etcdstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/lease"
)

// Lease a worker in an etcd cluster, and make ids with it. Close the lease before the store, so that
// another process can have the worker at once.
func Example() {
	ctx := context.Background()
	s, err := etcdstore.Open(ctx, "etcd://10.0.0.5:2379,10.0.0.6:2379,10.0.0.7:2379/shop")
	if err != nil {
		log.Fatal(err)
	}
	l, err := lease.Open(ctx, lease.Config{Store: s})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		id, err := l.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
	if err := l.Close(ctx); err != nil {
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}
}
