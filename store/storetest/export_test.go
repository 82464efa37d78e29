package storetest

import "time"

// LosePatience shortens the suite's wait for a store that is broken anyway.
func LosePatience() { patience, short = time.Second, 10*time.Millisecond }
