//go:build race

package sequence_test

import "time"

const (
	someSeeds = 30
	busySeeds = 2
	fairTime  = 3 * time.Second
)

var fairCrowds = []int{2, 16}
