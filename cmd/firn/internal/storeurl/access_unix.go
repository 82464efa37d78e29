//go:build unix

package storeurl

import (
	"fmt"
	"io/fs"
	"syscall"

	"github.com/firn-id/firn/store"
)

// access reports whether a file may be read and written. It does not open it: by POSIX, closing it
// again would drop the locks that this process holds through another handle.
func access(path string) error {
	const read, write = 4, 2
	if err := syscall.Access(path, read|write); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// oneName refuses a file with hard links. SQLite keeps a log and locks beside the name it opens the
// file by, so each name would be a store of its own.
func oneName(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		return fmt.Errorf("%w: the file has %d names (hard links), and each would be a separate store: remove all but one", store.ErrRefused, s.Nlink)
	}
	return nil
}
