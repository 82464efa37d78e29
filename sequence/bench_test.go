package sequence_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memstore"
)

// BenchmarkNext times what a call costs beside the store, which is in memory here.
func BenchmarkNext(b *testing.B) {
	for _, callers := range []int{1, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			b.ReportAllocs()
			all, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
			if err != nil {
				b.Fatal(err)
			}
			txn, err := all.Namespace("txn")
			if err != nil {
				b.Fatal(err)
			}
			var group sync.WaitGroup
			for i := range callers {
				group.Go(func() {
					for range (b.N + i) / callers {
						if _, err := txn.Next(background); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
		})
	}
}
