//go:build !race

package sequences

// successes is how often each caller succeeds.
const successes = 40
