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
	if h.total != 100_000 || h.most != all[len(all)-1] {
		t.Errorf("%d, %v", h.total, h.most)
	}
}

func TestBarsCountEveryDurationOnce(t *testing.T) {
	var h histogram
	for d, n := range map[time.Duration]int{40: 1, 90: 4000, 1500: 2000, 3 * time.Millisecond: 3, time.Minute: 1} {
		for range n {
			h.Add(d)
		}
	}
	want := []bar{
		{50, 1}, {100, 4000}, {200, 0}, {500, 0}, {1000, 0}, {2000, 2000}, // then the longest thousandth
		{10 * time.Microsecond, 0}, {100 * time.Microsecond, 0}, {time.Millisecond, 0}, {10 * time.Millisecond, 3},
		{100 * time.Millisecond, 0}, {time.Second, 0}, {10 * time.Second, 0}, {100 * time.Second, 1},
	}
	if got := h.bars(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var most histogram
	most.Add(math.MaxInt64)
	if bars := (&histogram{}).bars(); bars != nil || len(most.bars()) > 1 {
		t.Errorf("none: %v; the longest: %v", bars, most.bars())
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
	if none.Quantile(0.5) != 0 || none.most != 0 {
		t.Error("something of nothing")
	}
	none.Add(-time.Second)
	if none.Quantile(1) != 0 {
		t.Error("less than nothing")
	}
}
