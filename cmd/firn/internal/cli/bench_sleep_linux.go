package cli

import (
	"runtime"
	"syscall"
	"time"
)

// sleepUntil returns at a moment, or a tenth of a millisecond after it. The timers of
// the runtime are up to a millisecond late while the process has nothing else to do:
// as much as a call takes.
func sleepUntil(at time.Time) {
	runtime.Gosched() // the caller that was woken goes first: a system call keeps the processor for a while
	for left := time.Until(at); left > 0; left = time.Until(at) {
		ts := syscall.NsecToTimespec(int64(min(left, longestSleep)))
		_ = syscall.Nanosleep(&ts, nil) // interrupted, it is called again
	}
}

// longestSleep bounds how late the end of the benchmark is noticed.
const longestSleep = 100 * time.Millisecond
