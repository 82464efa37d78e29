package segment_test

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/memstore"
)

func Example() {
	ctx := context.Background()
	store := memstore.New(nil) // several processes share one that is not in memory
	s, err := segment.New(segment.Config{Store: store})
	if err != nil {
		panic(err)
	}
	orders, err := s.Namespace("orders")
	if err != nil {
		panic(err)
	}
	fmt.Println(orders.Next(ctx))
	fmt.Println(orders.Next(ctx))
	fmt.Println(orders.Take(ctx, 100))
	fmt.Println(s.Next(ctx, "users")) // another counter
	fmt.Println(s.Close(ctx))

	// What was not used has been given back: a restart goes on where Close left off.
	s, err = segment.New(segment.Config{Store: store})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Next(ctx, "orders"))
	fmt.Println(s.Close(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 to 102 <nil>
	// 1 <nil>
	// <nil>
	// 103 <nil>
	// <nil>
}

// Two stores that know nothing of each other serve one name.
func Example_stripes() {
	ctx := context.Background()
	for offset := range int64(2) {
		s, err := segment.New(segment.Config{Store: memstore.New(nil), Offset: offset, Stride: 2})
		if err != nil {
			panic(err)
		}
		n, err := s.Namespace("orders")
		if err != nil {
			panic(err)
		}
		r, err := n.Take(ctx, 4)
		fmt.Println(r.AppendTo(nil), err)
		if err := s.Close(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// [2 4 6 8] <nil>
	// [1 3 5 7] <nil>
}
