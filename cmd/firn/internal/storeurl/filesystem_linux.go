package storeurl

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

const (
	ownDisk     = "put it on a disk of the machine itself, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper"
	amongMany   = "several machines may share it, but a file serves only one: ids can be issued twice"
	inMemory    = "its content is lost when the machine restarts, and counters begin again"
	inContainer = "a container's own layer is removed with the container, and counters begin again; every container has its own file"
)

// volatile lists the file systems that lose their content, by their numbers in statfs(2).
var volatile = map[uint32]store.Finding{
	unix.TMPFS_MAGIC:           {Says: "on tmpfs: " + inMemory, Advice: "put it on a disk"},
	unix.RAMFS_MAGIC:           {Says: "on ramfs: " + inMemory, Advice: "put it on a disk"},
	unix.OVERLAYFS_SUPER_MAGIC: {Says: "on overlay: " + inContainer, Advice: "put it in a volume"},
}

var sharedFileSystem = filestore.SharedFileSystem // but in tests

// overNetwork refuses a file, or the folder of a new one, whose locks other machines do not see.
func overNetwork(path string) error {
	name, network, err := sharedFileSystem(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case network:
		return fmt.Errorf("%w: it is on %s: its locks do not hold between machines, and ids can be issued twice: %s", store.ErrRefused, name, ownDisk)
	}
	return nil
}

// examineFile examines the file system of a file, following links.
func examineFile(path string) ([]store.Finding, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, &os.PathError{Op: "statfs", Path: path, Err: err})
	}
	name, _, err := sharedFileSystem(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	found := onFileSystem(name, uint32(s.Type))
	var x unix.Statx_t
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil && found.Verdict == store.Good && unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &x) == nil {
		if option := noBarrierOption(string(mounts), x.Mnt_id); option != "" {
			found = mountedWith(option)
		}
	}
	return []store.Finding{found}, nil
}

func mountedWith(option string) store.Finding {
	return store.Finding{
		Subject: "file", Verdict: store.Doubtful,
		Says:   "on a disk that is mounted with " + option + ": a power failure loses confirmed writes, and counters go back",
		Advice: "mount it without this option, unless the disk's cache survives a power failure",
	}
}

// noBarrierOption returns the mount option that leaves synced data in the cache of the disk, or "". Mounts
// are in the format of proc_pid_mountinfo(5), whose last field has the options of the file system.
func noBarrierOption(mounts string, id uint64) (option string) {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != strconv.FormatUint(id, 10) {
			continue
		}
		for option := range strings.SplitSeq(fields[len(fields)-1], ",") {
			switch option {
			case "nobarrier", "barrier=0", "fsync_mode=nobarrier":
				return option
			}
		}
	}
	return ""
}

// onFileSystem judges a file system by its number and, if machines may share it, its name.
func onFileSystem(shared string, number uint32) store.Finding {
	found, loses := volatile[number]
	found.Subject = "file"
	switch {
	case shared != "":
		found.Verdict, found.Says, found.Advice = store.Doubtful, "on "+shared+": "+amongMany, ownDisk
	case loses:
		found.Verdict = store.Doubtful
	default:
		found.Says = "on a disk of this machine, judging by its file system"
	}
	return found
}
