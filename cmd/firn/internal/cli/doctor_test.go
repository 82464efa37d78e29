package cli

import (
	"math"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/slots"
	"github.com/firn-id/firn/store"
)

func TestAPoolIsDoubtfulWhenLessThanATenthIsLeft(t *testing.T) {
	for _, test := range []struct {
		workers, held int64
		want          store.Verdict
	}{
		{1, 0, store.Good},
		{1, 1, store.Bad},
		{10, 9, store.Good},
		{11, 10, store.Doubtful},
		{20, 18, store.Good},
		{20, 19, store.Doubtful},
		{1024, 921, store.Good},
		{1024, 922, store.Doubtful},
		{math.MaxInt64/2 + 1, 0, store.Good},
		{math.MaxInt64/2 + 1, 1, store.Good},
	} {
		pool := slots.Pool{Workers: test.workers, Slots: make([]slots.Slot, test.held)}
		for i := range pool.Slots {
			pool.Slots[i].State = slots.Live
		}
		if got := fullness(pool).Verdict; got != test.want {
			t.Errorf("%d of %d: %v, not %v", test.held, test.workers, got, test.want)
		}
	}
}
