//go:build !linux

package cli

import "time"

// sleepUntil sleeps until a moment, or a little longer.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
