package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/firn-id/firn/client"
)

func Example() {
	server := httptest.NewServer(&fake{kind: "snowflake", next: 1}) // in place of firn serve
	defer server.Close()

	c, err := client.New(client.Config{Servers: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	orders, err := c.IDs("orders")
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	first, err := orders.Next(ctx)
	if err != nil {
		panic(err)
	}
	second, err := orders.Next(ctx)
	fmt.Println(second > first, err)
	// Output: true <nil>
}

func ExampleNamespace_Fetch() {
	server := httptest.NewServer(&fake{kind: "sequence", next: 1})
	defer server.Close()

	c, err := client.New(client.Config{Servers: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	txn, err := c.IDs("txn")
	if err != nil {
		panic(err)
	}
	_, err = txn.Next(context.Background()) // a buffer would break the order that a sequence promises
	fmt.Println(errors.Is(err, client.ErrKind))
	ids, err := txn.Fetch(context.Background(), 3)
	fmt.Println(ids, err)
	// Output:
	// true
	// [1 2 3] <nil>
}
