//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// lock takes the lock of a file, unless another has it. It is the system's own, which it releases
// when the file is closed, or the process ends.
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

// identity tells a file from its copies, one with the number that it had among them.
func identity(f *os.File, info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return machineID()
	}
	return fmt.Sprintf("%d:%d %s %s", s.Dev, s.Ino, birth(f), machineID())
}
