//go:build unix

package filestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

func TestTheHomeIsInTheStateFolder(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	home := t.TempDir()
	t.Setenv("HOME", home)
	for state, want := range map[string]string{
		"": filepath.Join(home, ".local", "state", "firn"), "relative": filepath.Join(home, ".local", "state", "firn"), "/state": "/state/firn",
	} {
		t.Setenv("XDG_STATE_HOME", state)
		if dir, err := filestore.Home(); err != nil || dir != want {
			t.Errorf("XDG_STATE_HOME=%q: %q, %v, want %q", state, dir, err, want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	for _, none := range []string{"", "relative"} {
		t.Setenv("HOME", none)
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
