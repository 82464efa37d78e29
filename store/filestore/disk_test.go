//go:build unix

package filestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/firn-id/firn/store"
)

// Windows does not rename a folder with open files.
//
// For example, a process is stopped between its check of the lock and its write, and continues later.
func TestAWriterNeverWritesToAStoreInThePlaceOfItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "firn")
	s, err := Create(dir)
	if err == nil {
		_, err = s.CompareAndSwap(context.Background(), "k", 0, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &osDisk{dir: dir}
	if ok, err := d.tryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer d.unlock()
	if err := os.Rename(dir, dir+" away"); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir); err != nil {
		t.Fatal(err)
	}
	if err := d.replace("registers-.0", nil, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "registers-.0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is in the other store: %v", err)
	}
	if err := d.write("registers-.1", nil, true); err == nil {
		t.Error("a write is confirmed that is not where its name leads")
	}
}

// A fork without an exec, as C libraries do it, shares the open file, as a duplicate of its descriptor does.
func TestAChildThatWasForkedUnderTheLockDoesNotKeepIt(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(dir)
	if err == nil {
		_, err = s.CompareAndSwap(t.Context(), "k", 0, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &osDisk{dir: dir}
	if ok, err := d.tryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	child, err := syscall.Dup(int(d.locked.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(child)
	d.unlock()
	if ok, err := d.tryLock(); err != nil || !ok {
		t.Error("the child has the lock", err)
	}
	d.unlock()
}

// The lock file is looked for first. Before the folder is listed, another process may have made it, and written.
func TestAFolderInWhichAnotherProcessJustBeganIsUsed(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(dir)
	if err == nil {
		_, err = s.CompareAndSwap(t.Context(), "k", 0, nil)
	}
	if err == nil {
		err = (&osDisk{dir: dir}).unused()
	}
	if err != nil {
		t.Error(err)
	}
}

// immutable refuses to change the counts of writes, as a file system does that became read-only.
type immutable struct{ disk }

func (immutable) setCounts(map[string]uint64) error { return os.ErrPermission }

func TestAWriteWithoutItsCountIsUnconfirmed(t *testing.T) {
	s, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.disk = immutable{s.disk}
	_, err = s.CompareAndSwap(t.Context(), "k", 0, []byte("v"))
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrRefused) {
		t.Errorf("the write: %v, want it to be unavailable and not refused", err)
	}
	if e, err := s.Get(t.Context(), "k"); string(e.Value) != "v" || err != nil {
		t.Errorf("it was not applied: %q, %v", e.Value, err)
	}
}
