package filestore

import (
	"os"
	"syscall"
)

// shared lists the file systems that machines may share, by the magic numbers of statfs(2): 32 bits,
// however wide the field is on a processor.
var shared = map[uint32]fileSystem{
	0x00006969: {"NFS", true},
	0x0000517b: {"SMB", true},
	0xfe534d42: {"SMB", true},
	0xff534d42: {"CIFS", true},
	0x01021997: {"9p", true},
	0x00c36400: {"Ceph", true},
	0x5346414f: {"AFS", true},
	0x6b414653: {"AFS", true},
	0x73757245: {"Coda", true},
	0x786f4256: {"a shared folder of VirtualBox", true},
	0x7c7c6673: {"a shared folder of Parallels", true},
	0xbacbacbc: {"a shared folder of VMware", true},
	0x65735546: {"FUSE or virtiofs", false},
	0x7461636f: {"OCFS2", false},
	0x01161970: {"GFS2", false},
	0x0bd00bd0: {"Lustre", false},
	0x47504653: {"GPFS", false},
	0xaad7aaea: {"PanFS", false},
	0xbeefdead: {"StorNext", false},
	0x61636673: {"ACFS", false},
	0x19830326: {"BeeGFS", false},
	0x20030528: {"OrangeFS", false},
}

func fileSystemOf(path string) (fileSystem, error) {
	n, err := number(path)
	return shared[n], err
}

// fileSystemAt is [fileSystemOf] an open file.
func fileSystemAt(f *os.File) (fileSystem, error) {
	var s syscall.Statfs_t
	err := syscall.Fstatfs(int(f.Fd()), &s)
	return shared[uint32(s.Type)], os.NewSyscallError("fstatfs", err)
}

// number returns the magic number of a file's file system.
func number(path string) (uint32, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return uint32(s.Type), nil
}
