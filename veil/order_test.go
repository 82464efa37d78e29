package veil_test

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/firn-id/firn/veil"
)

// The test looks for patterns that an onlooker could see. Its bounds are five standard
// deviations; keys and ids are fixed, so the result is always the same. The second half
// shows that the test finds the patterns of weak permutations.
func TestVeilsOfConsecutiveIDsShowNoOrder(t *testing.T) {
	const from = 249681087299011313 // an id of the default layout
	for _, cfg := range []veil.Config{
		{Keys: keys(t, 16)},
		{Keys: keys(t, 32), Namespace: "orders"},
		{Keys: keys(t, 24), Bits: 64},
		{Keys: keys(t, 16), Bits: 53},
		{Keys: keys(t, 16), Bits: 31},
		{Keys: keys(t, 32), Bits: 20},
	} {
		c := newCipher(t, cfg)
		seen := traces(cmp.Or(cfg.Bits, 63), from, func(id uint64) uint64 {
			veiled, err := c.VeilUint64(id)
			if err != nil {
				t.Fatal(err)
			}
			return veiled
		})
		for _, trace := range seen {
			t.Errorf("%v: %s", c, trace)
		}
	}

	mix := func(n uint64) uint64 { // the finalizer of MurmurHash3
		n = (n ^ n>>33) * 0xff51afd7ed558ccd
		n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
		return n ^ n>>33
	}
	const mask = 1<<63 - 1
	for name, weak := range map[string]func(uint64) uint64{
		"nothing":                     func(id uint64) uint64 { return id },
		"xor":                         func(id uint64) uint64 { return id ^ 0x2545f4914f6cdd1d },
		"a multiplication":            func(id uint64) uint64 { return id * 0x9e3779b97f4a7c15 & mask },
		"reversed bits":               func(id uint64) uint64 { return bits.Reverse64(id) >> 1 },
		"a multiplication and a xor":  func(id uint64) uint64 { m := id * 0x9e3779b97f4a7c15 & mask; return m ^ m>>32 },
		"two rounds of a Feistel net": func(id uint64) uint64 { return feistel(id, 2, mix) },
	} {
		if len(traces(63, from, weak)) == 0 {
			t.Errorf("the test finds no order in the veils of %s", name)
		}
	}
	if seen := traces(63, from, func(id uint64) uint64 { return feistel(id, 10, mix) }); len(seen) > 0 {
		t.Errorf("ten rounds of a Feistel net: %q", seen)
	}
}

func feistel(id uint64, rounds uint64, mix func(uint64) uint64) uint64 {
	a, b := id>>32, id&(1<<32-1)
	for i := uint64(0); i < rounds; i += 2 {
		a = (a + mix(b|i<<40)) & (1<<31 - 1)
		b = (b + mix(a|(i+1)<<40)) & (1<<32 - 1)
	}
	return a<<32 | b
}

// traces returns how the veils of consecutive ids differ from random numbers.
func traces(width int, from uint64, f func(uint64) uint64) (seen []string) {
	const (
		n      = 1 << 14
		sigmas = 5
	)
	mask := uint64(1)<<width - 1
	from &= mask >> 1
	notice := func(what string, got, want, deviation float64) {
		if math.Abs(got-want) > sigmas*deviation {
			seen = append(seen, fmt.Sprintf("%s is %.4g, not within %.4g of %.4g", what, got, sigmas*deviation, want))
		}
	}
	veils, line := make([]uint64, n), make([]float64, n)
	for i := range veils {
		veils[i] = f(from + uint64(i))
		line[i] = float64(i)
	}

	// Bits are 0 as often as 1, and bytes equally frequent.
	for bit := range width {
		ones := 0
		for _, v := range veils {
			ones += int(v >> bit & 1)
		}
		notice(fmt.Sprintf("bit %d: ones", bit), float64(ones), n/2, math.Sqrt(n)/2)
	}
	var counts [256]float64
	for _, v := range veils {
		counts[v>>(width-8)]++
	}
	chi := 0.0
	for _, count := range counts {
		chi += (count - n/256) * (count - n/256) / (n / 256)
	}
	notice("chi squared of the first byte", chi, 255, math.Sqrt(2*255))

	// A later id has a greater veil as often as a smaller one.
	ascending := 0
	for i := range n - 1 {
		if veils[i] < veils[i+1] {
			ascending++
		}
	}
	notice("ascending neighbours", float64(ascending), (n-1)/2.0, math.Sqrt((n+1)/12.0))

	// Veils follow neither the ids nor the veils before them.
	values := make([]float64, n)
	for i, v := range veils {
		values[i] = float64(v)
	}
	notice("correlation with the id", correlation(values, line), 0, 1/math.Sqrt(n))
	for lag := 1; lag <= 8; lag++ {
		notice(fmt.Sprintf("correlation with the veil %d before", lag), correlation(values[lag:], values[:n-lag]), 0, 1/math.Sqrt(n))
	}

	// Steps from one veil to the next repeat only by chance.
	steps, repeated := map[uint64]bool{}, 0.0
	for i := range n - 1 {
		step := (veils[i+1] - veils[i]) & mask
		if steps[step] {
			repeated++
		}
		steps[step] = true
	}
	chance := float64(n) * n / 2 / math.Exp2(float64(width))
	notice("repeated steps", repeated, chance, math.Sqrt(chance)+0.1)

	return append(seen, avalanche(width, from, f)...)
}

// avalanche checks that each bit of an id changes each bit of the veil half of the time.
func avalanche(width int, from uint64, f func(uint64) uint64) (seen []string) {
	const (
		samples = 1 << 10
		sigmas  = 5.5 // there are up to 4,096 pairs of bits
	)
	random := rand.New(rand.NewPCG(63, 2))
	for in := range width {
		flips := make([]int, width)
		for range samples {
			id := (from + random.Uint64N(1<<20)) & (1<<width - 1)
			changed := f(id) ^ f(id^1<<in)
			for out := range width {
				flips[out] += int(changed >> out & 1)
			}
		}
		for out, n := range flips {
			if math.Abs(float64(n)-samples/2) > sigmas*math.Sqrt(samples)/2 {
				seen = append(seen, fmt.Sprintf("bit %d of the id changes bit %d of the veil %d times in %d", in, out, n, samples))
			}
		}
	}
	return seen
}

func correlation(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	return xy / math.Sqrt(xx*yy)
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}
