//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filestore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lock takes the lock of a file, unless another process has it. It is an operating system lock,
// released by unlock, or when all processes that have the open file have closed it or ended.
func lock(f *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// unlock releases the lock, also where a child has the file too: one that was forked while the lock was held, and has not
// executed another program.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// identity distinguishes a file from its copies, by its inode and its last change.
func identity(f *os.File) (string, error) {
	var s syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &s); err != nil {
		return "", &os.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	changed := changeTime(&s)
	return fmt.Sprintf("%d:%d %d.%09d", s.Dev, s.Ino, changed.Sec, changed.Nsec), nil
}

// machineID survives restarts. Containers often do not have one.
func machineID() string {
	text, _ := os.ReadFile("/etc/machine-id")
	return strings.TrimSpace(string(text))
}
