//go:build darwin || freebsd

package filestore

import (
	"os"
	"syscall"
)

// mntLocal is MNT_LOCAL of sys/mount.h: the file system is on a disk of this machine.
const mntLocal = 0x1000

func fileSystemOf(path string) (fileSystem, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return fileSystem{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	if uint64(s.Flags)&mntLocal == 0 {
		return fileSystem{"a network file system", true}, nil
	}
	return fileSystem{}, nil
}
