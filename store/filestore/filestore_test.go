package filestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
	"github.com/firn-id/firn/store/storetest"
)

func made(t *testing.T, dir string) *filestore.Store {
	t.Helper()
	s, err := filestore.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestItIsAStore(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		Open: func(t *testing.T) store.Store { return made(t, t.TempDir()) },
		Another: func(t *testing.T, s store.Store) store.Store {
			another, err := filestore.Open(s.(*filestore.Store).String())
			if err != nil {
				t.Fatal(err)
			}
			return another
		},
	})
}

func put(t *testing.T, s store.Store, key string, old store.Revision, value string) store.Revision {
	t.Helper()
	e, err := s.CompareAndSwap(context.Background(), key, old, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return e.Revision
}

// expect wants an error of a kind that contains some words.
func expect(t *testing.T, what string, err, kind error, says ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v: it does not say %q", what, err, word)
		}
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Each working directory would be another store.
func TestAnEmptyPathIsRefused(t *testing.T) {
	for _, open := range []func(string) (*filestore.Store, error){filestore.Open, filestore.Create} {
		if s, err := open(""); !errors.Is(err, store.ErrRefused) || s != nil || !strings.Contains(err.Error(), "name a folder") {
			t.Error(err)
		}
	}
}

func TestOnlyMakeCreatesAStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "firn")
	for range 2 { // without a folder, and with one of another program
		_, err := filestore.Open(dir)
		expect(t, "open", err, store.ErrNotFound, strconv.Quote(dir), "there is no store")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("1234"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made(t, dir)
	if _, err := filestore.Open(dir); err != nil {
		t.Error(err)
	}
	made(t, dir)
	file := filepath.Join(dir, "firn.lock")
	_, err := filestore.Create(file)
	expect(t, "a file in the place of a folder", err, store.ErrRefused, strconv.Quote(file), "folder")
}

// A process that is stopped in a write still has the removed file locked.
func TestMakeAddsNoLockFileToRegisters(t *testing.T) {
	dir := t.TempDir()
	put(t, made(t, dir), "k", 0, "v")
	if err := os.Remove(filepath.Join(dir, "firn.lock")); err != nil {
		t.Fatal(err)
	}
	_, err := filestore.Create(dir)
	expect(t, "make", err, store.ErrRefused, "firn.lock is missing", "end all processes")
}

func TestRegistersOfAPoolAreTogetherAndNamesAreSafeEverywhere(t *testing.T) {
	dir := t.TempDir()
	s := made(t, dir)
	for _, key := range []string{
		"firn/Orders/pool", "firn/Orders/slot/0/1", "firn/orders/pool", "firn/CON/pool", "firn/../pool", "firn/a./pool",
		"firn/counter:a", "firn/counter:b", "firn/doctor", "con", strings.Repeat("x/", 200), strings.Repeat("y", 512),
	} {
		put(t, s, key, 0, key)
	}
	want := []string{
		"firn.counts", "firn.lock", "registers-.0", "registers-.1", "registers-firn%2f%2e%2e.1", "registers-firn%2f%43%4f%4e.1", "registers-firn%2f%4frders.0",
		"registers-firn%2f%4frders.1", "registers-firn%2fa%2e.1", "registers-firn%2fcounter.0",
		"registers-firn%2fcounter.1", "registers-firn%2forders.1", "registers-firn.1", "registers-x%2fx.1",
	}
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	list, err := s.List(context.Background(), "firn/Orders/")
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := s.List(context.Background(), ""); err != nil || len(list) != 12 {
		t.Errorf("%d registers, %v", len(list), err)
	}
}

func TestAChangedRenamedLostOrOldFileIsRefused(t *testing.T) {
	ctx := context.Background()
	const key = "firn/p/pool"
	for name, hurt := range map[string]struct {
		do   func(path string, earlier []byte) error
		says string
	}{
		"changed": {func(path string, _ []byte) error {
			text, err := os.ReadFile(path + ".0")
			return errors.Join(err, os.WriteFile(path+".0", append(text, '\n'), 0o600))
		}, "1 writes, and had 2"},
		"emptied": {func(path string, _ []byte) error { return os.Truncate(path+".0", 0) }, "1 writes, and had 2"},
		"both emptied": {func(path string, _ []byte) error {
			return errors.Join(os.Truncate(path+".0", 0), os.Truncate(path+".1", 0))
		}, "not written by Firn"},
		"both another's": {func(path string, _ []byte) error {
			return errors.Join(os.Rename(path+"2.1", path+".0"), os.WriteFile(path+".1", []byte("[]"), 0o600))
		}, "renamed"},
		"of any size":   {func(path string, _ []byte) error { return os.Truncate(path+".0", 1<<43) }, "1 writes, and had 2"},
		"lost":          {func(path string, _ []byte) error { return os.Remove(path + ".0") }, "1 writes, and had 2"},
		"both lost":     {func(path string, _ []byte) error { return errors.Join(os.Remove(path+".0"), os.Remove(path+".1")) }, "0 writes, and had 2"},
		"an older copy": {func(path string, earlier []byte) error { return os.WriteFile(path+".0", earlier, 0o600) }, "1 writes, and had 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "registers-firn%2fp")
			s := made(t, dir)
			put(t, s, "firn/p2/pool", 0, "2")
			first := put(t, s, key, 0, "1")
			earlier, err := os.ReadFile(path + ".1")
			if err != nil {
				t.Fatal(err)
			}
			revision := put(t, s, key, first, "2")
			if err := hurt.do(path, earlier); err != nil {
				t.Fatal(err)
			}
			for _, s := range []store.Store{s, made(t, dir)} { // a restart, too
				for _, old := range []store.Revision{0, first, revision} {
					_, err := s.CompareAndSwap(ctx, key, old, []byte("3"))
					expect(t, "a write", err, store.ErrUnavailable, path, hurt.says)
				}
			}
			put(t, s, "firn/another/pool", 0, "") // unaffected
		})
	}
}

func TestTheNextCallNoticesAMissingOrReplacedFolder(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "firn")
	s := made(t, dir)
	e, err := s.CompareAndSwap(ctx, "k", 0, []byte("v"))
	if err != nil || e.Life == "" {
		t.Fatal(e, err)
	}
	if err := os.Rename(dir, dir+" away"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // without a folder, and with an empty one, as where a disk was mounted
		_, err := s.Get(ctx, "k")
		expect(t, "get", err, store.ErrUnavailable, "is gone")
		_, err = s.List(ctx, "")
		expect(t, "list", err, store.ErrUnavailable, "is gone")
		_, err = s.CompareAndSwap(ctx, "k", e.Revision, nil)
		expect(t, "write", err, store.ErrUnavailable, "is gone")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	made(t, dir)
	_, err = s.CompareAndSwap(ctx, "k", e.Revision, nil)
	expect(t, "write over what is not there", err, store.ErrConflict)
	another, err := s.CompareAndSwap(ctx, "k", 0, nil)
	if err != nil || another.Life == e.Life {
		t.Errorf("an empty store in its place: life %q, as before, %v", another.Life, err)
	}
	// A copy is another life too, even if the file system reuses the inode numbers of the removed files.
	if err := os.CopyFS(dir+" copy", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	copied, err := made(t, dir+" copy").CompareAndSwap(ctx, "k", another.Revision, nil)
	if err != nil || copied.Life == another.Life {
		t.Errorf("a copy: life %q as of what it was made of, %v", copied.Life, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(dir+" copy")); err != nil {
		t.Fatal(err)
	}
	restored, err := made(t, dir).CompareAndSwap(ctx, "k", copied.Revision, nil)
	if err != nil || restored.Life == another.Life {
		t.Errorf("a copy in the place of what was removed: life %q as of that, %v", restored.Life, err)
	}
	// Even if the file is the same, with its old content.
	file := filepath.Join(dir, "firn.lock")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	for after := before; err == nil && after.ModTime().Equal(before.ModTime()); after, err = os.Stat(file) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overwritten, err := made(t, dir).CompareAndSwap(ctx, "k", restored.Revision, nil)
	if err != nil || overwritten.Life == restored.Life {
		t.Errorf("a copy written over it: life %q as before, %v", overwritten.Life, err)
	}
}

// For example, a stopped process holds the lock.
func TestAWaitForTheLockEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	s := made(t, dir)
	revision := put(t, s, "k", 0, "v")
	held, err := os.OpenFile(filepath.Join(dir, "firn.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := filestore.Lock(held); err != nil || !ok {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = s.CompareAndSwap(ctx, "k", revision, []byte("w"))
	expect(t, "a write", err, context.DeadlineExceeded, "another process", "is stopped")
	if e, err := s.Get(context.Background(), "k"); err != nil || string(e.Value) != "v" {
		t.Errorf("a read: %q, %v", e.Value, err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", revision, "w")
}

const eachChild = 40

func TestMain(m *testing.M) {
	if dir := os.Getenv("FIRN_COUNT_IN"); dir != "" {
		count(dir)
		return
	}
	if dir := os.Getenv("FIRN_MAKE_IN"); dir != "" {
		if _, err := filestore.Create(dir); err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

// count counts in a store, and prints each confirmed value, until it is killed.
func count(dir string) {
	s, err := filestore.Open(dir)
	for n := 0; err == nil; {
		var e store.Entry
		if e, err = s.Get(context.Background(), "counter/c"); err == nil {
			fmt.Sscan(string(e.Value), &n)
			_, err = s.CompareAndSwap(context.Background(), "counter/c", e.Revision, fmt.Append(nil, n+1))
		}
		switch {
		case err == nil:
			fmt.Println(n + 1)
		case errors.Is(err, store.ErrConflict):
			err = nil
		}
	}
	fmt.Println(err)
}

// Processes are killed at arbitrary moments, also while they hold the lock.
func TestNoCountIsConfirmedTwiceByProcessesThatAreKilled(t *testing.T) {
	dir := t.TempDir()
	s := made(t, dir)
	put(t, s, "counter/c", 0, "0")
	confirmed := map[string]bool{}
	most := 0
	for range 12 {
		var children []*exec.Cmd
		var outputs []*bufio.Scanner
		for range 3 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "FIRN_COUNT_IN="+dir)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			children, outputs = append(children, cmd), append(outputs, bufio.NewScanner(out))
		}
		lines := func(out *bufio.Scanner, most int) {
			for n := 0; n < most && out.Scan(); n++ {
				if confirmed[out.Text()] {
					t.Fatalf("%s was confirmed twice", out.Text())
				}
				confirmed[out.Text()] = true
			}
		}
		lines(outputs[0], eachChild)
		for i, cmd := range children {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			lines(outputs[i], math.MaxInt)
			_ = cmd.Wait() // its error reports the kill
		}
		e, err := s.Get(context.Background(), "counter/c")
		if err != nil {
			t.Fatal(err)
		}
		for line := range confirmed {
			n, err := strconv.Atoi(line)
			if err != nil {
				t.Fatal(line)
			}
			most = max(most, n)
		}
		if n, _ := strconv.Atoi(string(e.Value)); n < most || n > most+len(children) {
			t.Fatalf("it counted to %s; %d was confirmed", e.Value, most)
		}
	}
	t.Logf("counted to %d", most)
}

func BenchmarkCompareAndSwap(b *testing.B) {
	s, err := filestore.Create(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var revision store.Revision
	for b.Loop() {
		e, err := s.CompareAndSwap(context.Background(), "firn/p/pool", revision, []byte("v"))
		if err != nil {
			b.Fatal(err)
		}
		revision = e.Revision
	}
}
