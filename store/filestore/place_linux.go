package filestore

import (
	"fmt"
	"os"
	"syscall"

	"github.com/firn-id/firn/store"
)

// shared are the file systems that machines share, or a host and its guests, by the numbers of
// statfs(2): 32 bits, whatever the field of a processor is wide.
var shared = map[uint32]string{
	0x00006969: "NFS",
	0x0000517b: "SMB",
	0xfe534d42: "SMB",
	0xff534d42: "CIFS",
	0x01021997: "9p",
	0x65735546: "FUSE or virtiofs",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x786f4256: "a shared folder of VirtualBox",
	0x7c7c6673: "a shared folder of Parallels",
	0xbacbacbc: "a shared folder of VMware",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0xaad7aaea: "PanFS",
	0xbeefdead: "StorNext",
	0x61636673: "ACFS",
	0x19830326: "BeeGFS",
}

// local refuses a folder on a file system that machines share.
func local(dir string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return refuse(shared[uint32(s.Type)])
}

func refuse(name string) error {
	if name == "" {
		return nil
	}
	return fmt.Errorf("%w: it is on %s, which machines may share, and locks do not reach across them: "+
		"name a folder on a disk of this machine, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper", store.ErrRefused, name)
}
