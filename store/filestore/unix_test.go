//go:build unix

package filestore_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

// In a folder of home directories the user may not list entries. Root may.
func TestAStoreIsCreatedBelowAnUnreadableFolder(t *testing.T) {
	above, err := os.MkdirTemp("", "firn-above") // t.TempDir's parents keep others out of it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chmod(above, 0o700), os.RemoveAll(above)); err != nil {
			t.Error(err)
		}
	})
	dir, binary := filepath.Join(above, "user"), filepath.Join(above, "binary")
	program, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.WriteFile(binary, program, 0o755), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "FIRN_MAKE_IN="+dir)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(above, 0o311); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := filestore.Open(dir); err != nil {
		t.Error(err)
	}
}

func TestAFileWithoutAnEndIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := made(t, dir)
	put(t, s, "firn/p/pool", put(t, s, "firn/p/pool", 0, "1"), "2")
	path := filepath.Join(dir, "registers-firn%2fp.0")
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)); err != nil {
		t.Fatal(err)
	}
	_, err := s.CompareAndSwap(t.Context(), "firn/p/pool", 0, nil)
	expect(t, "a write", err, store.ErrUnavailable, path, "1 writes, and had 2")
}

// Windows lets no program remove the file while a lock is held on it.
func TestALockOnAFileThatLostItsNameExcludesNoProcess(t *testing.T) {
	dir := t.TempDir()
	made(t, dir)
	held, err := os.OpenFile(filepath.Join(dir, "firn.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := filestore.Lock(held); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := os.Remove(held.Name()); err != nil {
		t.Fatal(err)
	}
	put(t, made(t, dir), "k", 0, "v")
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}
