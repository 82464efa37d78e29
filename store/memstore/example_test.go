package memstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/store/memstore"
)

// A program under test has a store without a server.
func Example() {
	s := memstore.New(nil)
	defer s.Close()
	ctx := context.Background()
	written, err := s.CompareAndSwap(ctx, "greeting", 0, []byte("hello"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err = s.CompareAndSwap(ctx, "greeting", written.Revision, []byte("good evening")); err != nil {
		log.Fatal(err)
	}
	list, err := s.List(ctx, "greet")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range list {
		fmt.Printf("%s: %s\n", e.Key, e.Value)
	}
	// Output: greeting: good evening
}
