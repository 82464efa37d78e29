//go:build unix

package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// For example, a process is stopped between its check of the lock and its write, and continues later.
func TestAWriterNeverWritesToAStoreInThePlaceOfItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "firn")
	if _, err := Make(dir); err != nil {
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
	if _, err := Make(dir); err != nil {
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
