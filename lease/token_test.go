package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/store/storetest"
)

// Two processes draw the same numbers, as with a seed that stands in the code, and the answer
// to the one's claim is lost.
func TestProcessesWithEqualRandomNumbersAreDistinct(t *testing.T) {
	for _, later := range []time.Duration{0, time.Millisecond} {
		w := newWorld(t)
		alike := func(c *Config) {
			w.oneWorker(c)
			c.Generator.Random = func() uint64 { return 7 }
		}
		must(0, w.start(alike).Close(context.Background())) // the pool is open
		w.time.Pass(time.Minute)
		var other *Lease
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op != storetest.OpCompareAndSwap || other != nil {
				return storetest.Pass
			}
			other = w.start(alike, func(c *Config) { c.Store = remote{w.mem, w.time.Wall, nil} })
			w.time.Pass(later)
			return storetest.FailUnapplied
		}
		first, err := w.try(alike)
		if !errors.Is(err, ErrFull) {
			t.Errorf("%v later: the worker is held by another, and %v", later, err)
		}
		for range 10 {
			w.mustTake(other, 3)
			if err == nil {
				_ = w.take(first, 3)
			}
			w.time.Pass(time.Second)
		}
	}
}
