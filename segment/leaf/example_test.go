package leaf_test

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/leaf"
)

// Ids of the biz_tag "orders", beside nodes of Leaf that run.
func Example() {
	ctx := context.Background()
	db := openTable(2001) // a program calls sql.Open with a driver of MySQL
	all, err := segment.New(segment.Config{Source: &leaf.Source{DB: db}})
	if err != nil {
		panic(err)
	}
	orders, err := all.Namespace("orders")
	if err != nil {
		panic(err)
	}
	fmt.Println(orders.Next(ctx))
	fmt.Println(orders.Next(ctx))
	fmt.Println(all.Close(ctx))
	fmt.Println(db.Close())
	// Output:
	// 2001 <nil>
	// 2002 <nil>
	// <nil>
	// <nil>
}

// The range that a node of Leaf would get.
func ExampleSource_Fetch() {
	db := openTable(2001)
	source := &leaf.Source{DB: db}
	for range 2 {
		r, err := source.Fetch(context.Background(), "orders", segment.Ask{Step: 1000, Above: -1})
		fmt.Println(r, err)
	}
	fmt.Println(db.Close())
	// Output:
	// 2001 to 3000 <nil>
	// 3001 to 4000 <nil>
	// <nil>
}
