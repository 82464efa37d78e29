//go:build !(linux && amd64)

package wallclock

import (
	"errors"
	"time"
)

// Move is not possible here.
func Move(int, time.Duration) error {
	return errors.New("the wall clock of a process can be moved on Linux on x86-64 only")
}

// Supported reports whether clocks can be moved on this system.
func Supported() bool { return false }
