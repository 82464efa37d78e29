package cli

import (
	"runtime"
	"syscall"
	"time"
)

// sleepUntil sleeps until a moment, and is at most a tenth of a millisecond late. In an idle process the runtime's
// timers are up to a millisecond late, which is as long as a call takes.
func sleepUntil(at time.Time) {
	runtime.Gosched() // the caller that was woken goes first: a system call keeps the processor for a while
	for left := time.Until(at); left > 0; left = time.Until(at) {
		ts := syscall.NsecToTimespec(int64(min(left, longestSleep)))
		_ = syscall.Nanosleep(&ts, nil) // interrupted, it is called again
	}
}

// longestSleep bounds how late the end of the benchmark is noticed.
const longestSleep = 100 * time.Millisecond
