//go:build !race

package linear

// successes is how often each caller succeeds.
const successes = 40
