package filestore

import (
	"fmt"

	"github.com/firn-id/firn/store"
)

// A fileSystem is one that several machines, or a host and its guests, may use. The zero value: any other.
type fileSystem struct {
	name    string
	network bool // certainly over a network; otherwise it may also be a local disk
}

// SharedFileSystem returns the name of the file system of a file or a folder, if several machines may
// use it, and whether it certainly is a network file system. The name is empty for other file systems,
// and on operating systems that do not report it.
func SharedFileSystem(path string) (name string, network bool, err error) {
	s, err := fileSystemOf(path)
	return s.name, s.network, err
}

// local refuses a file system that machines may share.
func local(found fileSystem, err error) error {
	if found.name != "" {
		err = fmt.Errorf("%w: it is on %s, which machines may share, and locks do not reach across them: "+
			"name a folder on a disk of this machine, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper", store.ErrRefused, found.name)
	}
	return err
}
