package prefetch_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn/prefetch"
)

// A database makes many ids at once, and takes long for each call.
type database struct{ last int64 }

func (d *database) Fill(_ context.Context, dst []int64) (int, error) {
	for i := range dst { // in place of: UPDATE counter SET last = last + len(dst) RETURNING last
		d.last++
		dst[i] = d.last
	}
	return len(dst), nil
}

func Example() {
	b, err := prefetch.New(prefetch.Config[int64]{Source: &database{}, Size: 100})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	ctx := context.Background()
	id, err := b.Next(ctx) // from memory; waits only while the buffer is empty
	fmt.Println(id, err)
	ids := make([]int64, 3)
	n, err := b.Fill(ctx, ids)
	fmt.Println(ids[:n], err)
	// Output:
	// 1 <nil>
	// [2 3 4] <nil>
}
