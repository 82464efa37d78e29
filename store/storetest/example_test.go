package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// The test of a backend, here of memstore.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestItIsAStore(t *testing.T)
		storetest.Run(t, storetest.Factory{
			Open: func(*testing.T) store.Store { return memstore.New(nil) },
		})
	}
}

// A write is applied, and its answer is lost: code that takes the error for a no makes a mistake.
func ExampleFaulty() {
	s := storetest.NewFaulty(memstore.New(nil))
	s.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && c.N == 1 {
			return storetest.FailApplied
		}
		return storetest.Pass
	}
	ctx := context.Background()
	_, err := s.CompareAndSwap(ctx, "key", 0, []byte("value"))
	fmt.Println("lost:", errors.Is(err, storetest.ErrAnswerLost), "unapplied:", store.Unapplied(err))
	e, err := s.Get(ctx, "key")
	fmt.Printf("%s, %v\n", e.Value, err)
	// Output:
	// lost: true unapplied: false
	// value, <nil>
}
