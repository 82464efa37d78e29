//go:build darwin || freebsd || netbsd

package filestore

import (
	"fmt"
	"os"
	"syscall"
)

// birth says when a file was made: of two that had one number, one after the other, which it is.
// Empty: the system does not tell.
func birth(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%d", s.Birthtimespec.Sec, s.Birthtimespec.Nsec)
}
