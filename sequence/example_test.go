package sequence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memstore"
)

func Example() {
	ctx := context.Background()
	// In a program this is a store that all processes share.
	all, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer all.Close(context.WithoutCancel(ctx))
	txn, err := all.Namespace("txn")
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := txn.Next(ctx)
	fmt.Println(id, err)
	first, err := txn.Reserve(ctx, 10)
	fmt.Println(first, err)
	id, err = txn.Next(ctx)
	fmt.Println(id, err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 12 <nil>
}

// A table that has ids already is gone on from.
func ExampleNamespace_Raise() {
	ctx := context.Background()
	all, err := sequence.New(sequence.Config{Store: memstore.New(nil), Max: 70_001})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer all.Close(context.WithoutCancel(ctx))
	orders, err := all.Namespace("orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := orders.Raise(ctx, 70_000); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(orders.Next(ctx))
	_, err = orders.Next(ctx)
	fmt.Println(errors.Is(err, sequence.ErrExhausted))
	// Output:
	// 70001 <nil>
	// true
}
