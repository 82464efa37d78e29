//go:build unix

package storeurl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// testBinary is a copy of the test binary that unprivileged users can run.
const testBinary = "test-binary"

// unprivileged runs a job in a child process without root's rights: root may write read-only files.
func unprivileged(t *testing.T, dir, job, path string) (string, error) {
	t.Helper()
	cmd := start(job, path)
	cmd.Path, cmd.Dir = filepath.Join(dir, testBinary), dir
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAReadOnlyFileOrFolderIsRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "firn-readonly") // the folders above t.TempDir may exclude unprivileged users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, os.Args[0], filepath.Join(dir, testBinary))
	for _, test := range []struct {
		name         string
		folder, file os.FileMode
		job          string
		ok           bool
		want         string
	}{
		{"a writable file and folder", 0o777, 0o666, "count", true, ""},
		{"a read-only file", 0o777, 0o444, "open", false, "writable"},
		{"an unreadable file", 0o777, 0o000, "open", false, "writable"},
		{"a read-only folder", 0o555, 0o666, "count", false, "writ"},
		{"a folder without access", 0o000, 0o666, "open", false, "may be written"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join(dir, strings.ReplaceAll(test.name, " ", "-"))
			path := filepath.Join(folder, "firn.db")
			if err := os.Mkdir(folder, 0o777); err != nil {
				t.Fatal(err)
			}
			before := made(t, 1)
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
			for name, mode := range map[string]os.FileMode{path: test.file, folder: test.folder} {
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
			out, err := unprivileged(t, dir, test.job, path)
			if (err == nil) != test.ok || !strings.Contains(out, test.want) || !test.ok && !strings.Contains(out, path) {
				t.Errorf("%v: %s", err, out)
			}
			if err := os.Chmod(folder, 0o777); err != nil { // so that it can be removed
				t.Fatal(err)
			}
		})
	}
}
