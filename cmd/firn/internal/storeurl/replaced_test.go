//go:build unix

package storeurl

import (
	"bufio"
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// remove removes files of a database.
func remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARemovedOrReplacedFileIsDetectedAtTheNextCall(t *testing.T) {
	ctx := context.Background()
	for name, replace := range map[string]func(t *testing.T, path string){
		"removed":              func(t *testing.T, path string) { remove(t, path) },
		"removed with its log": func(t *testing.T, path string) { remove(t, path, path+"-wal", path+"-shm") },
		"removed with its folder": func(t *testing.T, path string) {
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		},
		"replaced by another": func(t *testing.T, path string) {
			if err := os.WriteFile(path+".new", made(t, 3), 0o600); err != nil {
				t.Fatal(err)
			}
			remove(t, path+"-wal", path+"-shm")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "firn.db")
			s := open(t, path)
			revision := put(t, s, "counter", 0, "1000")
			replace(t, path)
			if _, err := os.Stat(path); err != nil {
				_, err := s.CompareAndSwap(ctx, "counter", revision, []byte("1001"))
				expect(t, "a write to a removed file", err, store.ErrUnavailable, "is gone")
				if _, err := os.Stat(filepath.Dir(path)); name == "removed with its folder" && err == nil {
					t.Error("its folder was created again")
				}
				open(t, path) // creates it
			}
			if e, err := s.Get(ctx, "counter"); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("it still reads %q from the old file, %v", e.Value, err)
			}
			if _, err := s.CompareAndSwap(ctx, "counter", revision, []byte("1001")); !errors.Is(err, store.ErrConflict) {
				t.Fatalf("a write over a revision of the old file: %v", err)
			}
			// It shares the new file with other processes.
			for round := range 3 {
				if out, err := start("count", path).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				n, err := increment(ctx, s)
				if want := (round + 1) * (eachChild + 1); err != nil || n != want {
					t.Fatalf("round %d: counted to %d, %v, want %s", round, n, err, strconv.Itoa(want))
				}
			}
		})
	}
}

func TestALibrarysStoreDoesNotUseARemovedOrReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	s, err := sqlstore.Create(t.Context(), raw(t, path), sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	revision := put(t, s, "k", 0, "v")
	remove(t, path)
	_, err = s.CompareAndSwap(t.Context(), "k", revision, []byte("w"))
	expect(t, "a write to a removed file", err, store.ErrUnavailable, "is gone", path)
	if err := os.WriteFile(path, made(t, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get(t.Context(), "k")
	expect(t, "a read of a replaced file", err, store.ErrUnavailable, "was replaced", path)
	if _, err := s.Get(t.Context(), "key "); err != nil {
		t.Errorf("a read of the new file: %v", err)
	}
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a read of the new file: %v", err)
	}
}

// A disk is unmounted for a moment. A file created in the folder below it would be another store,
// hidden once the disk is back.
func TestARunningStoreDoesNotRecreateAMissingFile(t *testing.T) {
	ctx := context.Background()
	folder := filepath.Join(t.TempDir(), "disk")
	path := filepath.Join(folder, "firn.db")
	s := open(t, path)
	revision := put(t, s, "counter", 0, "1000")
	away := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	away(folder, folder+" away")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, old := range []store.Revision{0, revision} {
		_, err := s.CompareAndSwap(ctx, "counter", old, []byte("1001"))
		expect(t, "a write", err, store.ErrUnavailable, "is gone")
	}
	_, err := s.Get(ctx, "counter")
	expect(t, "a read", err, store.ErrUnavailable, "is gone")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err) // it is not empty
	}
	away(folder+" away", folder)
	put(t, s, "counter", revision, "1001")
}

// The latest writes are only in the log, and the locks are on its index: removing them loses both. The
// file itself is as of the last checkpoint.
func TestARemovedLogIsDetectedAtTheNextCall(t *testing.T) {
	for name, gone := range map[string][]string{"log": {"-wal"}, "index": {"-shm"}, "both": {"-wal", "-shm"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, link := filepath.Join(dir, "firn.db"), filepath.Join(dir, "link.db")
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			made := open(t, path)
			put(t, made, "counter", 0, "1000")
			if err := made.Close(); err != nil {
				t.Fatal(err)
			}
			s := open(t, link) // SQLite follows links, and keeps the log beside the target
			for _, suffix := range gone {
				remove(t, path+suffix)
			}
			if n, err := increment(context.Background(), s); err != nil || n != 1001 {
				t.Fatalf("at the next call: counted to %d, %v", n, err)
			}
			for round := range 3 { // it shares the new files with other processes
				if out, err := start("count", path).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				n, err := increment(context.Background(), s)
				if want := 1001 + (round+1)*(eachChild+1); err != nil || n != want {
					t.Fatalf("round %d: counted to %d, %v, want %d: two stores", round, n, err, want)
				}
			}
		})
	}
}

// New files beside the removed ones would have locks of their own: a process that is still in a write
// would write over what is confirmed since.
func TestARemovedLogIsNotRecreatedWhileAnotherProcessUsesTheFile(t *testing.T) {
	for name, gone := range map[string][]string{"log": {"-wal"}, "index": {"-shm"}, "both": {"-wal", "-shm"}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "firn.db")
			s := open(t, path)
			put(t, s, "counter", 0, "1000")
			other := start("hold", path)
			out, err := other.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			for _, suffix := range gone {
				remove(t, path+suffix)
			}
			for range 2 {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				_, err = s.Get(ctx, "counter")
				cancel()
				expect(t, "while another process uses it", err, store.ErrUnavailable, "another process uses it")
			}
			_, err = openFiles(path)
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a removed file was created again: %v", err)
			}
			if err := other.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = other.Wait() // it was killed
			n, err := increment(context.Background(), s)
			if err != nil || name == "index" && n != 1002 { // what was only in a removed log is lost
				t.Errorf("once it has ended: counted to %d, %v", n, err)
			}
		})
	}
}

func TestAWriteToARemovedFileIsNotAcknowledged(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "firn.db")
	base, err := sqlite.NewConnector(dsn(path, true))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := (&connector{Connector: base, path: path, makes: true}).Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := opened.(*conn)
	if _, err := c.ExecContext(ctx, "CREATE TABLE a (b)", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.ResetSession(ctx); err != nil {
		t.Fatal(err)
	}
	remove(t, path)
	_, err = c.ExecContext(ctx, "INSERT INTO a VALUES (1)", nil)
	if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || errors.Is(err, driver.ErrBadConn) {
		t.Errorf("a write to a removed file: %v, want an unknown outcome, and no second try", err)
	}
	if err := c.ResetSession(ctx); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("the connection would be used again: %v", err)
	}
}
