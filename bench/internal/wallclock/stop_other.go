//go:build unix && !linux

package wallclock

import "syscall"

// Stop stops a process. Its threads may go on for a moment.
func Stop(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }
