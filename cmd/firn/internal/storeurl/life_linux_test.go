package storeurl

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/store"
)

func TestAFileKeepsItsLifeUntilItIsRecreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	s := open(t, path)
	life := func(s store.Store, key string) string {
		t.Helper()
		e, err := s.CompareAndSwap(context.Background(), key, 0, nil)
		if err != nil || e.Life == "" {
			t.Fatalf("life %q, %v", e.Life, err)
		}
		return e.Life
	}
	first := life(s, "a")
	if again := life(open(t, path), "b"); again != first {
		t.Errorf("life %q, for another handle %q", first, again)
	}
	seen := map[string]bool{first: true}
	for range 5 { // the file system reuses the number of a removed file
		remove(t, path, path+"-wal", path+"-shm")
		now := life(open(t, path), "a")
		if also := life(s, "b"); also != now {
			t.Errorf("life %q, for a handle opened earlier %q", now, also)
		}
		if seen[now] {
			t.Errorf("the recreated file has an earlier life: %q", now)
		}
		seen[now] = true
	}
}

// Without a creation time, a copy with the number of a removed file would have that file's life.
func TestAFileWithoutACreationTimeHasNoLife(t *testing.T) {
	if life, err := lifeOf("/proc/self/status"); err != nil || life != "" {
		t.Errorf("%q, %v", life, err)
	}
}
