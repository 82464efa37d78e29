package filestore_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

func TestTheHomeIsInTheStateFolder(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	variable, below := "HOME", filepath.Join(".local", "state")
	if runtime.GOOS == "windows" {
		variable, below = "LocalAppData", ""
	}
	home, absolute := t.TempDir(), t.TempDir()
	t.Setenv(variable, home)
	for state, want := range map[string]string{"": filepath.Join(home, below), "relative": filepath.Join(home, below), absolute: absolute} {
		t.Setenv("XDG_STATE_HOME", state)
		if dir, err := filestore.Home(); err != nil || dir != filepath.Join(want, "firn") {
			t.Errorf("XDG_STATE_HOME=%q: %q, %v, want firn in %q", state, dir, err, want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	for _, invalid := range []string{"", "relative"} {
		t.Setenv(variable, invalid)
		_, err := filestore.Home()
		expect(t, "no home", err, store.ErrRefused, "XDG_STATE_HOME")
	}
}

func TestTheHomeIsRefusedWhereIdsWouldRepeat(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	_, err := filestore.Home()
	expect(t, "a pod", err, store.ErrRefused, "Kubernetes", "Redis")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")

	old := filepath.Join(state, "firn", "firn.db")
	if err := os.MkdirAll(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = filestore.Home()
	expect(t, "beside a SQLite file", err, store.ErrRefused, "sqlite:"+old)
	made(t, filepath.Dir(old))
	if _, err := filestore.Home(); err != nil {
		t.Error(err)
	}
}

func TestAContainerShowsItself(t *testing.T) {
	t.Setenv("container", "podman")
	if !filestore.InContainer() {
		t.Error("not seen")
	}
}

func TestProcessIDsOfItsOwnAreAContainer(t *testing.T) {
	for namespace, want := range map[string]bool{"pid:[4026531836]": false, "pid:[4026532281]": true, "": false} {
		if got := filestore.OwnProcesses(namespace, "6.1.0-44-cloud-amd64\n"); got != want {
			t.Errorf("%q: %v", namespace, got)
		}
	}
	if filestore.OwnProcesses("pid:[4026532281]", "5.15.153.1-microsoft-standard-WSL2\n") {
		t.Error("a distribution of WSL counts as a container")
	}
}

func TestAnOverlayAsTheRootIsAContainer(t *testing.T) {
	for mounts, want := range map[string]bool{
		"2094 1833 0:211 / / rw,relatime master:701 - overlay overlay rw,lowerdir=/l/1:/l/2,upperdir=/u,workdir=/w\n2095 2094 0:214 / /proc rw - proc proc rw\n": true,
		"2094 1833 0:211 / / rw - overlay none rw\n":                                            true,
		"28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n":                               false,
		"28 1 8:1 / / rw - ext4 /dev/sda1 rw\n9 28 0:5 / /var/merged rw - overlay overlay rw\n": false,
		"": false,
	} {
		if got := filestore.OverlayRoot(mounts); got != want {
			t.Errorf("%q: %v", mounts, got)
		}
	}
}
