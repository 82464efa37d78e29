package numbering_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memstore"
)

// Order numbers that start at 1 each day.
func Example() {
	ctx := context.Background()
	// In a program this is a store that all processes share.
	all, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
	if err != nil {
		panic(err)
	}
	orders, err := all.Namespace("orders")
	if err != nil {
		panic(err)
	}
	clock := newClock("2026-11-21T09:00:00Z") // leave out Time, for the clock of the system
	f, err := numbering.New(numbering.Config{Template: "ORD{yyyyMMdd}-{n:6}", Counter: orders, Time: clock})
	if err != nil {
		panic(err)
	}
	fmt.Println(f.Next(ctx))
	fmt.Println(f.Reserve(ctx, 2))
	clock.Pass(24 * time.Hour)
	fmt.Println(f.Next(ctx))
	fmt.Println(all.Close(ctx))
	// Output:
	// ORD20261121-000001 <nil>
	// [ORD20261121-000002 ORD20261121-000003] <nil>
	// ORD20261122-000001 <nil>
	// <nil>
}

// A number that a person typed.
func ExampleFormat_Parse() {
	all, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
	if err != nil {
		panic(err)
	}
	counter, err := all.Namespace("invoices")
	if err != nil {
		panic(err)
	}
	f, err := numbering.New(numbering.Config{Template: "R-{yyyy}-{n:4}", Counter: counter})
	if err != nil {
		panic(err)
	}
	n, err := f.Parse("R-2026-0042")
	fmt.Println(n.Begins.Year(), n.N, err)
	_, err = f.Parse("R-2026-42")
	fmt.Println(errors.Is(err, firn.ErrSyntax))
	// Output:
	// 2026 42 <nil>
	// true
}
