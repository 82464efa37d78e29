package register

import "crypto/rand"

// Token draws a name that no other writer has. The operating system draws it: a source that the caller
// may seed could be the same in two processes, or copied with a process.
func Token() string { return rand.Text() }
