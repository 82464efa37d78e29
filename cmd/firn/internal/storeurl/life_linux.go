package storeurl

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mounted reports whether a single file is mounted, as by docker run -v FILE:FILE. Kernels before 5.8
// do not report it.
func mounted(path string) (bool, error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, 0, &s); err != nil {
		return false, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// lifeOf names the life of a store in a file: the file system, the file's number, its creation time,
// and the machine, whose id survives a restart. A file that was removed and re-created may have the
// same number, but not the same time. So there is no life where the file system keeps no such time: ext4
// with inodes of 128 bytes, ext3, or FUSE. A copy that is written into the same file cannot be detected:
// it has the same life.
func lifeOf(path string) (string, error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return "", &os.PathError{Op: "statx", Path: path, Err: err}
	}
	if s.Mask&unix.STATX_BTIME == 0 {
		return "", nil
	}
	machine, _ := os.ReadFile("/etc/machine-id") // containers often do not have one
	return strings.TrimSpace(fmt.Sprintf("%d:%d %d %d.%09d %s",
		s.Dev_major, s.Dev_minor, s.Ino, s.Btime.Sec, s.Btime.Nsec, strings.TrimSpace(string(machine)))), nil
}
