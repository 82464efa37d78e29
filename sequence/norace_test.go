//go:build !race

package sequence_test

import "time"

// How much is played; under the race detector, which is slow, less.
const (
	someSeeds = 150
	busySeeds = 8
	fairTime  = 10 * time.Second
)

var fairCrowds = []int{1, 2, 4, 16, 64}
