//go:build !(linux && amd64)

package wallclock

import "time"

// Move is not possible here.
func Move(int, time.Duration) error { return ErrUnsupported }

// Supported reports whether clocks can be moved on this system.
func Supported() bool { return false }
