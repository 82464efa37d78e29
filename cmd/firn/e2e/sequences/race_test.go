//go:build race

package sequences

// successes is how often each caller succeeds: less often under the race detector,
// which makes Porcupine slow.
const successes = 12
