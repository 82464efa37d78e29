package storeurl

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/firn-id/firn/store"
)

// A fileSystem is a kind whose files are no safe store.
type fileSystem struct {
	name    string
	verdict store.Verdict
	says    string
	advice  string
}

const (
	overNetwork = "its locks do not hold between machines, and ids can be issued twice"
	inMemory    = "it is forgotten when the machine restarts, and counters begin again"
	inContainer = "a container's own layer goes with the container, and counters begin again; another container has another file"
	amongMany   = "machines share it, and a file serves one machine: ids can be issued twice"
	ownDisk     = "put it on a disk of the machine itself, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper"
)

// fileSystems are by the numbers that Linux gives them, see statfs(2): 32 bits, whatever the
// field of a machine is wide.
var fileSystems = map[uint32]fileSystem{
	unix.NFS_SUPER_MAGIC:  {"NFS", store.Bad, overNetwork, ownDisk},
	unix.SMB_SUPER_MAGIC:  {"SMB", store.Bad, overNetwork, ownDisk},
	unix.SMB2_SUPER_MAGIC: {"SMB", store.Bad, overNetwork, ownDisk},
	unix.CIFS_SUPER_MAGIC: {"CIFS", store.Bad, overNetwork, ownDisk},
	unix.V9FS_MAGIC:       {"9p", store.Bad, overNetwork, ownDisk},
	unix.CEPH_SUPER_MAGIC: {"Ceph", store.Bad, overNetwork, ownDisk},
	unix.AFS_SUPER_MAGIC:  {"AFS", store.Bad, overNetwork, ownDisk},
	unix.AFS_FS_MAGIC:     {"AFS", store.Bad, overNetwork, ownDisk},
	unix.CODA_SUPER_MAGIC: {"Coda", store.Bad, overNetwork, ownDisk},
	0x786f4256:            {"VirtualBox", store.Bad, overNetwork, ownDisk},
	0x7c7c6673:            {"Parallels", store.Bad, overNetwork, ownDisk},
	0xbacbacbc:            {"VMware", store.Bad, overNetwork, ownDisk},
	unix.FUSE_SUPER_MAGIC: {"FUSE", store.Doubtful, "what it is in truth cannot be seen, and most over a network lock nothing", ownDisk},
	unix.TMPFS_MAGIC:      {"tmpfs", store.Doubtful, inMemory, "put it on a disk"},
	unix.RAMFS_MAGIC:      {"ramfs", store.Doubtful, inMemory, "put it on a disk"},

	unix.OVERLAYFS_SUPER_MAGIC: {"overlay", store.Doubtful, inContainer, "put it in a volume"},
	unix.OCFS2_SUPER_MAGIC:     {"OCFS2", store.Doubtful, amongMany, ownDisk},
	0x01161970:                 {"GFS2", store.Doubtful, amongMany, ownDisk},
	0x0bd00bd0:                 {"Lustre", store.Doubtful, amongMany, ownDisk},
	0x47504653:                 {"GPFS", store.Doubtful, amongMany, ownDisk},
	0xaad7aaea:                 {"PanFS", store.Doubtful, amongMany, ownDisk},
	0xbeefdead:                 {"StorNext", store.Doubtful, amongMany, ownDisk},
	0x61636673:                 {"ACFS", store.Doubtful, amongMany, ownDisk},
	0x19830326:                 {"BeeGFS", store.Doubtful, amongMany, ownDisk},
}

// examineFile looks at what a file is on, wherever a link of that name leads.
func examineFile(path string) ([]store.Finding, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, &os.PathError{Op: "statfs", Path: path, Err: err})
	}
	found := onFileSystem(uint32(s.Type))
	var x unix.Statx_t
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil && found.Verdict == store.Good && unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &x) == nil {
		if option := unflushed(string(mounts), x.Mnt_id); option != "" {
			found = store.Finding{
				Subject: "file", Verdict: store.Doubtful,
				Says:   "on a disk that is mounted with " + option + ": if power fails, what was confirmed is forgotten, and counters go back",
				Advice: "mount it without that, unless the disk's cache outlasts a loss of power",
			}
		}
	}
	return []store.Finding{found}, nil
}

// unflushed returns the option by which a mount leaves what is synced in the cache of its disk, "" without
// one. Mounts are as in proc_pid_mountinfo(5), whose last field has the options of the file system.
func unflushed(mounts string, id uint64) (option string) {
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

func onFileSystem(number uint32) store.Finding {
	on, ok := fileSystems[number]
	if !ok {
		return store.Finding{Subject: "file", Says: "on a disk of this machine, as far as its file system tells"}
	}
	return store.Finding{Subject: "file", Verdict: on.verdict, Says: "on " + on.name + ": " + on.says, Advice: on.advice}
}
