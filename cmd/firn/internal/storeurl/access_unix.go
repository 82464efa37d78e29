//go:build unix

package storeurl

import (
	"fmt"
	"io/fs"
	"syscall"

	"github.com/firn-id/firn/store"
)

// access reports whether a file may be read and written. It does not open it:
// closing it again would drop the locks that this process has on it through
// another handle, as POSIX will have it.
func access(path string) error {
	const read, write = 4, 2
	if err := syscall.Access(path, read|write); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// oneName refuses a file with hard links. SQLite has a log and locks beside the name that it is
// opened by, so under each name there would be a store of its own.
func oneName(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		return fmt.Errorf("%w: the file has %d names (hard links), and each would be a store of its own: remove all but one", store.ErrRefused, s.Nlink)
	}
	return nil
}
