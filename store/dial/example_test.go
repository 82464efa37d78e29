package dial_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/firn-id/firn/store/dial"
)

// The name of a store has two addresses. Nothing listens at the first.
func ExampleDialer() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	d := dial.Dialer{
		Lookup: func(context.Context, string) ([]string, error) { return []string{"127.0.0.2", "127.0.0.1"}, nil },
	}
	conn, err := d.Dial(context.Background(), "tcp", net.JoinHostPort("store.example", port))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(conn.RemoteAddr().(*net.TCPAddr).IP)
	// Output: 127.0.0.1
}
