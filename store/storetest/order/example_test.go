package order_test

import (
	"fmt"

	"github.com/firn-id/firn/store/storetest/order"
)

// The second call begins after the first has ended, and gets a lower id.
func ExampleCheck() {
	fmt.Println(order.Check([]order.Call{
		{Begin: 0, End: 10, First: 5, N: 3, Who: 1},
		{Begin: 20, End: 30, First: 4, N: 1, Who: 2},
	}))
	// Output:
	// {Begin:20 End:30 First:4 N:1 Who:2} began after {Begin:0 End:10 First:5 N:3 Who:1} had ended and is not greater
}
