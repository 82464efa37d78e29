package storeurl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

// made returns the content of a store file with n keys.
func made(t *testing.T, n int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "firn.db")
	s := open(t, path)
	for i := range n {
		put(t, s, "key "+strings.Repeat("k", i), 0, strings.Repeat("v", 1000))
	}
	if err := s.Close(); err != nil { // moves the log into the file
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestABadFileIsRefusedAndNotChanged(t *testing.T) {
	header := made(t, 1)
	garbage := bytes.Clone(header)
	for i := 100; i < len(garbage); i++ {
		garbage[i] = 0xA5
	}
	for _, test := range []struct {
		name    string
		content []byte
		want    string
		is      error
	}{
		{"text", []byte(strings.Repeat("dear diary\n", 1000)), "not a SQLite database", store.ErrRefused},
		{"a short text", []byte("hi"), "not a SQLite database", store.ErrRefused},
		{"a good header and garbage", garbage, "damaged", store.ErrUnavailable},
	} {
		path := filepath.Join(t.TempDir(), "firn.db")
		if err := os.WriteFile(path, test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(context.Background(), "sqlite:"+path)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q and the path", test.name, err, test.want)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(after, test.content) {
			t.Errorf("%s: the file was changed, %v", test.name, err)
		}
	}
}

func TestOnlyMakeCreatesAStoreInAFile(t *testing.T) {
	dir := t.TempDir()
	none, empty, other := filepath.Join(dir, "below", "firn.db"), filepath.Join(dir, "empty.db"), filepath.Join(dir, "other.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const journal, table = "PRAGMA journal_mode = DELETE", "CREATE TABLE other (k TEXT)"
	if err := raw(t, other, journal, table).Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{none, empty, other} {
		url := "sqlite:" + path
		_, err := Open(context.Background(), url)
		if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "there is no store in it") || !strings.Contains(err.Error(), "firn store make") || !strings.Contains(err.Error(), url) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("Open made %v, %v", entries, err)
	}
	if info, err := os.Stat(empty); err != nil || info.Size() != 0 {
		t.Errorf("Open changed the empty file: %v, %v", info, err)
	}
	if after, err := os.ReadFile(other); err != nil || !bytes.Equal(after, before) {
		t.Errorf("Open changed the database of another program: %v", err)
	}
	for _, path := range []string{none, empty, other} {
		revision := put(t, open(t, path), "k", 0, "v")
		s, err := Open(context.Background(), "sqlite:"+path)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "k", revision, "w")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestATildeIsNotExpanded(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, url := range []string{"file:~/firn", "file:~", "file:~me/firn", "sqlite:~/firn.db"} {
		for _, open := range []func(context.Context, string) (store.Store, error){Open, Create} {
			if _, err := open(context.Background(), url); !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), url+": ~ is not expanded") || !strings.Contains(err.Error(), "$HOME") {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
	for _, url := range []string{"file:./~/firn", "sqlite:./~firn.db"} {
		s, err := Create(context.Background(), url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyARegularFileIsOpened(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"sqlite:":                             "no path",
		"sqlite:" + dir:                       "directory",
		"sqlite:" + os.DevNull:                "not a regular file",
		"sqlite:" + filepath.Join(file, "db"): filepath.Join(file, "db"), // below a file
	} {
		if _, err := Open(context.Background(), url); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), url) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

func TestADamagedPageIsReported(t *testing.T) {
	content := made(t, 100)
	// Damage all pages except the first: it has the schema, so the file opens.
	for i := 4096; i < len(content); i++ {
		content[i] = 0xA5
	}
	path := filepath.Join(t.TempDir(), "firn.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	_, get := s.Get(context.Background(), "key ")
	_, list := s.List(context.Background(), "")
	_, write := s.CompareAndSwap(context.Background(), "key ", 0, nil)
	for _, err := range []error{get, list, write} {
		if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) ||
			!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a damaged page: %v", err)
		}
	}
}

func TestAForeignTableIsRefused(t *testing.T) {
	for _, table := range []string{
		"CREATE TABLE firn_registers (id INTEGER, name TEXT)",
		"CREATE TABLE firn_registers (k TEXT PRIMARY KEY, v BLOB)",
		"CREATE TABLE firn_registers (k TEXT PRIMARY KEY, rev INTEGER)",
		"CREATE TABLE firn_registers (v BLOB, rev INTEGER)",
		"CREATE VIEW firn_registers AS SELECT 1 AS id",
	} {
		path := filepath.Join(t.TempDir(), "firn.db")
		db := raw(t, path, table)
		_, err := Open(context.Background(), "sqlite:"+path)
		if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "not one of Firn's") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", table, err)
		}
		var sql string
		if err := db.QueryRow("SELECT sql FROM sqlite_schema").Scan(&sql); err != nil || sql != table {
			t.Errorf("%s: it is %q now, %v", table, sql, err)
		}
	}
	// With our columns, but not our key: detected at the first write.
	path := filepath.Join(t.TempDir(), "firn.db")
	raw(t, path, "CREATE TABLE firn_registers (k TEXT, v BLOB, rev INTEGER)")
	_, err := open(t, path).CompareAndSwap(context.Background(), "k", 0, nil)
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), path) {
		t.Errorf("a table without a key: %v", err)
	}
}
