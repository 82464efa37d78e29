package filestore

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

func TestFileSystemsThatMachinesShareAreNamed(t *testing.T) {
	for number, want := range map[uint32]fileSystem{ // as linux/magic.h has them
		0x6969:     {"NFS", true},
		0xff534d42: {"CIFS", true},
		0x6b414653: {"AFS", true}, // the one of the kernel
		0x786f4256: {"a shared folder of VirtualBox", true},
		0x65735546: {"FUSE or virtiofs", false},
		0x7461636f: {"OCFS2", false},
		0xef53:     {}, // ext4
		0x01021994: {}, // tmpfs
	} {
		if got := shared[number]; got != want {
			t.Errorf("%x is %+v, want %+v", number, got, want)
		}
	}
}

func TestAFolderOnAFileSystemThatMachinesShareIsRefused(t *testing.T) {
	dir := t.TempDir()
	share(t, dir)
	if _, err := Create(dir); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "a file system of this test") {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it was refused, and has made %v, %v", entries, err)
	}
}

// A service may start before its volume is mounted over the folder.
func TestAFileSystemThatMachinesShareIsRefusedOnceItIsMountedOverTheFolder(t *testing.T) {
	s, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.CompareAndSwap(t.Context(), "k", 0, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	unshare := share(t, s.dir)
	if _, err := s.CompareAndSwap(t.Context(), "k", first.Revision, []byte("2")); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "a file system of this test") {
		t.Errorf("%v", err)
	}
	unshare()
	if _, err := s.CompareAndSwap(t.Context(), "k", first.Revision, []byte("3")); err != nil {
		t.Errorf("back on its own file system: %v", err)
	}
}

// share lists the file system of a folder among those that machines share, until the end of the test or undo.
func share(t *testing.T, dir string) (undo func()) {
	t.Helper()
	here, err := number(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, known := shared[here]
	shared[here] = fileSystem{"a file system of this test", false}
	undo = func() {
		if delete(shared, here); known {
			shared[here] = before
		}
	}
	t.Cleanup(undo)
	return undo
}
