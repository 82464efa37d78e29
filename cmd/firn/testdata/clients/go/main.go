// Makes calls of Go's clients to the server at 127.0.0.1:PORT. The test puts the calls at the mark.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

func call[T any](answer T, err error) {
	if err != nil {
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Println("ok", answer)
}

func main() {
	ctx, address := context.Background(), "127.0.0.1:"+os.Args[1]
	rdb := redis.NewClient(&redis.Options{Addr: address})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
	if err != nil {
		panic(err)
	}
	_ = time.Minute // for calls
	// CALLS
	_, _, _ = ctx, rdb, client
}
