//go:build race

package sequences

// successes is how often each caller succeeds. It is lower with the race detector, which makes
// Porcupine slow.
const successes = 12
