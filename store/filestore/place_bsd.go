//go:build darwin || freebsd

package filestore

import (
	"fmt"
	"os"
	"syscall"

	"github.com/firn-id/firn/store"
)

// mntLocal is MNT_LOCAL of sys/mount.h: the file system is on a disk of this machine.
const mntLocal = 0x1000

// local refuses a folder on a file system that is not of this machine.
func local(dir string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if uint64(s.Flags)&mntLocal == 0 {
		return fmt.Errorf("%w: it is on a network, and locks do not reach across machines: "+
			"name a folder on a disk of this machine, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper", store.ErrRefused)
	}
	return nil
}
