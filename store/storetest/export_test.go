package storetest

import "time"

// LosePatience shortens how long the suite waits for a store that is broken anyway.
func LosePatience() { patience, short = time.Second, 10*time.Millisecond }
