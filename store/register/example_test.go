package register_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// A program counts its starts beside Firn's registers.
func ExampleRegister_Update() {
	r := register.Register{Store: memstore.New(nil), Key: "app/starts", Time: firn.SystemTime(), Random: rand.Uint64}
	count := func(found store.Entry) ([]byte, error) {
		if r.Ours() { // counted already, but the answer to the write was lost
			return nil, nil
		}
		starts := 0
		if found.Revision != 0 {
			var err error
			if starts, err = strconv.Atoi(string(found.Value)); err != nil {
				return nil, err
			}
		}
		return []byte(strconv.Itoa(starts + 1)), nil
	}
	for range 2 {
		e, err := r.Update(context.Background(), count)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", e.Value)
	}
	// Output:
	// 1
	// 2
}
