//go:build !linux

package cli

import "time"

// sleepUntil returns at a moment, or a little after it.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
