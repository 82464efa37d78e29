package storeurl

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/firn-id/firn/store"
)

func TestAFileSystemThatIsNotALocalDiskIsReported(t *testing.T) {
	for _, test := range []struct {
		shared string
		number uint32
		want   store.Finding
	}{
		{"", unix.EXT4_SUPER_MAGIC, store.Finding{Verdict: store.Good, Says: "disk"}},
		{"FUSE or virtiofs", unix.FUSE_SUPER_MAGIC, store.Finding{Verdict: store.Doubtful, Says: "several machines may share it", Advice: "put it on a disk of the machine itself"}},
		{"", unix.TMPFS_MAGIC, store.Finding{Verdict: store.Doubtful, Says: "restarts"}},
		{"", unix.RAMFS_MAGIC, store.Finding{Verdict: store.Doubtful, Says: "on ramfs: ", Advice: "put it on a disk"}},
		{"", unix.OVERLAYFS_SUPER_MAGIC, store.Finding{Verdict: store.Doubtful, Says: "on overlay: a container's own layer is removed with the container", Advice: "put it in a volume"}},
	} {
		number, want := test.number, test.want
		f := onFileSystem(test.shared, number)
		if f.Verdict != want.Verdict || !strings.Contains(f.Says, want.Says) || !strings.Contains(f.Advice, want.Advice) || (f.Advice == "") != (f.Verdict == store.Good) {
			t.Errorf("%x: %v %v", number, f.Verdict, f)
		}
	}
	found, err := open(t, filepath.Join(t.TempDir(), "firn.db")).Traits().Examine(context.Background())
	if err != nil || len(found) != 1 || found[0].Subject != "file" {
		t.Errorf("%v, %v", found, err)
	}
}

func TestAFileWhoseLocksDoNotHoldIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "firn.db")
	s := open(t, path)
	put(t, s, "k", 0, "v")
	known := sharedFileSystem
	sharedFileSystem = func(string) (string, bool, error) { return "NFS", true, nil }
	defer func() { sharedFileSystem = known }()
	_, opened := Open(t.Context(), "sqlite:"+path)
	_, made := Create(t.Context(), "sqlite:"+filepath.Join(dir, "new.db"))
	for what, err := range map[string]error{"a file": opened, "a new file": made} {
		expect(t, what, err, store.ErrRefused, "on NFS: its locks do not hold between machines", "put it on a disk of the machine itself")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("it was refused, and has made %v, %v", entries, err)
	}
}

func TestAnUnflushedDiskIsReported(t *testing.T) {
	const mounts = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n" +
		"44 27 7:0 / /nobarrier rw,relatime shared:1 - ext4 /dev/loop0 rw,nobarrier\n" +
		"45 27 0:40 /sub /data rw,noatime - btrfs /dev/sdb rw,nobarrier,subvol=/sub\n" +
		"46 27 8:1 / /f2 rw - f2fs /dev/sda1 rw,fsync_mode=nobarrier\n" +
		"47 27 8:2 / /old rw - ext3 /dev/sda2 rw,barrier=0\n" +
		"4 27 8:3 / /usual rw - f2fs /dev/sda3 rw,fsync_mode=posix\n"
	for id, want := range map[uint64]string{27: "", 44: "nobarrier", 45: "nobarrier", 46: "fsync_mode=nobarrier", 47: "barrier=0", 4: "", 9: ""} {
		if got := noBarrierOption(mounts, id); got != want {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
	if f := mountedWith("nobarrier"); f.Verdict != store.Doubtful || !strings.HasPrefix(f.String(), "file: on a disk that is mounted with nobarrier: a power failure loses confirmed writes") ||
		!strings.Contains(f.Advice, "mount it without this option") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
}

func TestTheFileSystemOfALinksTargetIsExamined(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "firn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(memory); err != nil {
			t.Error(err)
		}
	})
	link := filepath.Join(t.TempDir(), "firn.db")
	if err := os.Symlink(filepath.Join(memory, "firn.db"), link); err != nil {
		t.Fatal(err)
	}
	found, err := open(t, link).Traits().Examine(context.Background())
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Says, "tmpfs") {
		t.Errorf("%v, %v", found, err)
	}
}
