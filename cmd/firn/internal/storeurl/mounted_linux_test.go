package storeurl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountBeside mounts a file without its folder, like docker run -v with a file.
func mountBeside(path string) error {
	if err := os.WriteFile(path+".mounted", nil, 0o600); err != nil {
		return err
	}
	return unix.Mount(path, path+".mounted", "", unix.MS_BIND, "")
}

// SQLite keeps the log and the locks in the folder where it finds the file.
func TestAFileMountedWithoutItsFolderIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	put(t, open(t, path), "k", 0, "v")
	cmd := start("mount", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNS, Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skipf("mounting is not permitted here: %v", err)
	}
	if err == nil || !strings.Contains(string(out), "mount the folder") || !strings.Contains(string(out), path) {
		t.Errorf("%v: %s", err, out)
	}
}
