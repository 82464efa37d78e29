package storeurl

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mounted reports whether a file is mounted by itself, as docker run -v FILE:FILE does.
// Kernels before 5.8 do not tell.
func mounted(path string) (bool, error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, 0, &s); err != nil {
		return false, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// lifeOf names the life of a store in a file: the file system, the file's number,
// when it was made, and the machine, whose id outlasts a restart. A file that was
// removed and made again may have the same number, but not the same time. A copy
// that is written into the same file is the same life: nothing tells.
func lifeOf(path string) (string, error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return "", &os.PathError{Op: "statx", Path: path, Err: err}
	}
	machine, _ := os.ReadFile("/etc/machine-id") // containers often have none
	return strings.TrimSpace(fmt.Sprintf("%d:%d %d %d.%09d %s",
		s.Dev_major, s.Dev_minor, s.Ino, s.Btime.Sec, s.Btime.Nsec, strings.TrimSpace(string(machine)))), nil
}
