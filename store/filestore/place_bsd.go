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
	err := syscall.Statfs(path, &s)
	return judge(&s, "statfs", path, err)
}

// fileSystemAt is [fileSystemOf] an open file.
func fileSystemAt(f *os.File) (fileSystem, error) {
	var s syscall.Statfs_t
	err := syscall.Fstatfs(int(f.Fd()), &s)
	return judge(&s, "fstatfs", f.Name(), err)
}

func judge(s *syscall.Statfs_t, op, path string, err error) (fileSystem, error) {
	switch {
	case err != nil:
		return fileSystem{}, &os.PathError{Op: op, Path: path, Err: err}
	case uint64(s.Flags)&mntLocal == 0:
		return fileSystem{"a network file system", true}, nil
	}
	return fileSystem{}, nil
}
