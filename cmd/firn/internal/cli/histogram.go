package cli

import (
	"math"
	"math/bits"
	"time"
)

// Below 64 ns each bucket has one nanosecond; above, each doubling has 32 buckets.
const (
	exact   = 64
	each    = exact / 2
	buckets = (64-6)*each + exact
)

// A histogram counts how long calls took, in buckets 1/32 of their value wide. So quantiles are right within three
// percent, however many calls there are. The zero value is empty. It is not safe for concurrent use.
type histogram struct {
	counts [buckets]int64
	total  int64
	most   time.Duration
}

// Add counts one duration; a negative one counts as 0.
func (h *histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(uint64(d))]++
	h.total++
	h.most = max(h.most, d)
}

// Merge adds the counts of another histogram.
func (h *histogram) Merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.most = max(h.most, other.most)
}

// Quantile returns the duration that the fraction q of the calls did not exceed, or 0 without calls.
func (h *histogram) Quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(h.total)))
	var seen int64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(time.Duration(bucketMax(i)), h.most)
		}
	}
	return h.most
}

// A bar counts the durations up to its bound that are longer than the bound of the bar before.
type bar struct {
	atMost time.Duration
	count  int64
}

// bars returns the bars from the first to the last that counts any. The bounds are 1, 2 and 5 times the powers of ten,
// and for the longest thousandth the powers alone: single long calls would make most of the bars.
func (h *histogram) bars() (bars []bar) {
	left := h.total
	i := 0
	for power := time.Duration(1); left > 0 && power <= 1e18; power *= 10 {
		for _, step := range []time.Duration{1, 2, 5} {
			if step > 1 && left <= h.total/1000 {
				continue
			}
			b := bar{atMost: power * step}
			for ; i < buckets && bucketMax(i) <= uint64(b.atMost); i++ {
				b.count += h.counts[i]
			}
			left -= b.count
			if b.count > 0 || len(bars) > 0 && left > 0 {
				bars = append(bars, b)
			}
		}
	}
	return bars
}

func bucket(v uint64) int {
	if v < exact {
		return int(v)
	}
	shift := bits.Len64(v) - bits.Len64(exact-1)
	return shift*each + int(v>>shift)
}

// bucketMax returns the greatest value of a bucket.
func bucketMax(i int) uint64 {
	if i < exact {
		return uint64(i)
	}
	shift := i/each - 1
	return (uint64(i-shift*each)+1)<<shift - 1
}
