//go:build unix

package server

import "syscall"

// descriptors returns how many descriptors the process may have; 0 if that is not known. Go has raised the limit as far as
// it may.
func descriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}
