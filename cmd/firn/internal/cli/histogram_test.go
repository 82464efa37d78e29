package cli

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAreRightWithinThreePercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	var h, other histogram
	for i := range 100_000 {
		d := time.Duration(math.Exp(random.Float64() * 25)) // 1 ns to a minute
		all = append(all, d)
		if i%2 == 0 {
			h.Add(d)
		} else {
			other.Add(d)
		}
	}
	h.Merge(&other)
	slices.Sort(all)
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[int(math.Ceil(q*float64(len(all))))-1]
		if got := h.Quantile(q); got < want || float64(got) > float64(want)*1.033+1 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if h.Total() != 100_000 || h.Max() != all[len(all)-1] {
		t.Errorf("%d, %v", h.Total(), h.Max())
	}
}

func TestEveryDurationHasABucketThatHoldsIt(t *testing.T) {
	for shift := range 63 {
		for _, v := range []uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			i := bucket(v)
			if i >= buckets || bucketMax(i) < v || i > 0 && bucketMax(i-1) >= v {
				t.Errorf("%d is in bucket %d, up to %d", v, i, bucketMax(i))
			}
		}
	}
	if i := bucket(math.MaxInt64); i >= buckets || bucketMax(i) != math.MaxInt64 {
		t.Errorf("bucket %d", i)
	}
	var none histogram
	if none.Quantile(0.5) != 0 || none.Max() != 0 {
		t.Error("something of nothing")
	}
	none.Add(-time.Second)
	if none.Quantile(1) != 0 {
		t.Error("less than nothing")
	}
}
