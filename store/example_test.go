package store_test

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A write has three outcomes: confirmed, certainly not applied, and unknown.
func Example() {
	var s store.Store = memstore.New(nil)
	ctx := context.Background()
	outcome := func(err error) string {
		switch {
		case err == nil:
			return "confirmed"
		case store.Unapplied(err):
			return "certainly not applied"
		default:
			return "unknown"
		}
	}
	e, err := s.CompareAndSwap(ctx, "key", 0, []byte("first"))
	fmt.Println("create:", outcome(err))
	_, err = s.CompareAndSwap(ctx, "key", 0, []byte("second"))
	fmt.Println("create what exists:", outcome(err))
	_, err = s.CompareAndSwap(ctx, "key", e.Revision, []byte("second"))
	fmt.Println("replace:", outcome(err))
	err = s.Close()
	if err == nil {
		_, err = s.CompareAndSwap(ctx, "key", e.Revision, []byte("third"))
	}
	fmt.Println("write to a closed store:", outcome(err))
	// Output:
	// create: confirmed
	// create what exists: certainly not applied
	// replace: confirmed
	// write to a closed store: unknown
}
