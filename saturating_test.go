package firn

import (
	"math"
	"math/big"
	"testing"
)

func TestSumsAndDifferencesStopAtTheEnds(t *testing.T) {
	values := []int64{math.MinInt64, math.MinInt64 + 1, math.MinInt64 + 2, -5, -2, -1, 0, 1, 2, 5, math.MaxInt64 - 2, math.MaxInt64 - 1, math.MaxInt64}
	clamped := func(n *big.Int) int64 {
		switch {
		case n.IsInt64():
			return n.Int64()
		case n.Sign() < 0:
			return math.MinInt64
		default:
			return math.MaxInt64
		}
	}
	for _, a := range values {
		for _, b := range values {
			x, y := big.NewInt(a), big.NewInt(b)
			if got, want := saturatingAdd(a, b), clamped(new(big.Int).Add(x, y)); got != want {
				t.Errorf("%d + %d = %d, not %d", a, b, got, want)
			}
			if got, want := saturatingSub(a, b), clamped(new(big.Int).Sub(x, y)); got != want {
				t.Errorf("%d - %d = %d, not %d", a, b, got, want)
			}
		}
	}
}
