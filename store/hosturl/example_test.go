package hosturl_test

import (
	"fmt"

	"github.com/firn-id/firn/store/hosturl"
)

// A store asks for the settings it has. What it did not ask for is a mistake.
func ExampleParse() {
	u := hosturl.Parse("etcd://app:secret@a:2379,b/shop?tmeout=3", "2379", "etcd")
	fmt.Println(u.Hosts, u.Path, u.User)
	timeout, ok := u.Int("timeout", 1, 60)
	fmt.Println(timeout, ok)
	fmt.Println(u.Err())

	fmt.Println(hosturl.Redact("etcd://app:secret@a:2379/shop"))
	// Output:
	// [a:2379 b:2379] shop app
	// 0 false
	// there is no setting tmeout: those are timeout
	// etcd://…@a:2379/shop
}
