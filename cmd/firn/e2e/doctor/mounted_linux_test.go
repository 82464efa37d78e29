package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// inMount runs firn beside file systems that only it sees: the shell's commands, in $1, mount one at the folder $2, and the
// store in $3 is made there. All that they started ends with it, and is unmounted.
var inMount = []string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", `
	eval "$1"
	"$0" store make "$3" >/dev/null
	shift 3
	status=0
	"$0" "$@" || status=$?
	exit $status`}

// mayMount reports whether file systems can be mounted here, as by root on a machine or in a container of --privileged.
var mayMount = sync.OnceValue(func() bool {
	_, err := os.Stat("/dev/fuse")
	return err == nil && os.Geteuid() == 0 && exec.Command("unshare", "--mount", "--pid", "--fork", "true").Run() == nil
})

func init() {
	cases["files on mounted file systems"] = func(d *doctor) {
		if !mayMount() {
			if os.Getenv("CI") == "true" {
				d.Fatal("mounting is not permitted here: run as root, in a container with --privileged")
			}
			d.Log("mounting needs root: only the tests that elsewhere names show what is said of mounted file systems")
			return
		}
		itself, err := os.Executable()
		d.must(err)
		for _, test := range []struct{ mount, words string }{
			{`mount -t ramfs none "$2"`, "on ramfs: its content is lost when the machine restarts, and counters begin again → put it on a disk"},
			{`mount -t tmpfs none "$2"; mkdir "$2/up" "$2/work"; mount -t overlay -o "lowerdir=/etc,upperdir=$2/up,workdir=$2/work" none "$2"`,
				"on overlay: a container's own layer is removed with the container, and counters begin again; every container has its own file → put it in a volume"},
			{`bindfs "$2" "$2"`, "on FUSE or virtiofs: several machines may share it, but a file serves only one: ids can be issued twice → put it on a disk of the machine itself, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper"},
			{`truncate -s 16M "$2/disk"; /sbin/mkfs.ext4 -q "$2/disk"; mount -o loop,barrier=0 "$2/disk" "$2"`,
				"on a disk that is mounted with nobarrier: a power failure loses confirmed writes, and counters go back → mount it without this option, unless the disk's cache survives a power failure"},
		} {
			dir := d.TempDir()
			url := "sqlite:" + filepath.Join(dir, "firn.db")
			mounted := &doctor{T: d.T, all: d.all, within: append(inMount[:len(inMount):len(inMount)], itself, test.mount, dir, url)}
			mounted.finds("doubtful", "file", test.words, "--store", url)
		}
	}
}
