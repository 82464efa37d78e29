//go:build unix

package storeurl

import (
	"io/fs"
	"syscall"
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
