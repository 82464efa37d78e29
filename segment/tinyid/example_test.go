package tinyid_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/tinyid"
)

// Ids of the biz_type "orders", beside nodes of TinyId that run.
func Example() {
	ctx := context.Background()
	db := sql.OpenDB(&unlocked{maxID: 2000}) // a program calls sql.Open with a driver of MySQL
	all, err := segment.New(segment.Config{Source: &tinyid.Source{DB: db}})
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
