package zkstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/zkstore"
)

// Lease a worker in a ZooKeeper ensemble, and make ids with it. Close the lease before the store, so that
// another process can have the worker at once.
func Example() {
	ctx := context.Background()
	s, err := zkstore.Open(ctx, "zookeeper://10.0.0.5:2181,10.0.0.6:2181,10.0.0.7:2181/shop")
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
