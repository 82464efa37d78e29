// Command small leases a worker and makes an id, as firn next does: the floor of what that command can cost.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/firn-id/firn/lease"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	l, err := lease.OnThisMachine(ctx, lease.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(ctx)) }()
	id, err := l.Next(ctx)
	fmt.Println(id)
	return err
}
