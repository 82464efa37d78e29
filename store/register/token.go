package register

import "crypto/rand"

// Token draws a name that no other writer has. It is of the system, and not of a source
// that a caller may seed: two processes may have been given the same, or be copies of one.
func Token() string { return rand.Text() }
