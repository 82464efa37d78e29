package storeurl

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
	"github.com/firn-id/firn/store/storetest"
)

// childVariable makes the test binary run a job on a file in a process of its own: "job path". The
// parent reads its standard output and exit status.
const childVariable = "FIRN_STOREURL_CHILD"

func TestMain(m *testing.M) {
	if job, path, ok := strings.Cut(os.Getenv(childVariable), " "); ok {
		if err := child(job, path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const eachChild = 25

func child(job, path string) error {
	ctx := context.Background()
	if job == "mount" {
		if err := mountBeside(path); err != nil {
			return err
		}
		path += ".mounted"
	}
	s, err := Create(ctx, "sqlite:"+path)
	if err != nil || job == "open" {
		return err
	}
	for i := 0; job == "forever" || i < eachChild; i++ {
		n, err := increment(ctx, s)
		if err != nil {
			return err
		}
		if job == "forever" || job == "hold" {
			fmt.Println(n) // acknowledged
		}
		if job == "hold" { // until it is killed
			select {}
		}
	}
	return s.Close()
}

// increment adds one to the counter, and returns its new value.
func increment(ctx context.Context, s store.Store) (int, error) {
	for {
		e, err := s.Get(ctx, "counter")
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return 0, err
		}
		n := 0
		if err == nil {
			if n, err = strconv.Atoi(string(e.Value)); err != nil {
				return 0, err
			}
		}
		_, err = s.CompareAndSwap(ctx, "counter", e.Revision, []byte(strconv.Itoa(n+1)))
		if !errors.Is(err, store.ErrConflict) {
			return n + 1, err
		}
	}
}

func start(job, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+job+" "+path)
	return cmd
}

// open opens the store in a file, and creates it if it does not exist.
func open(t *testing.T, path string) *sqliteStore {
	t.Helper()
	s, err := Create(context.Background(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*sqliteStore)
}

func put(t *testing.T, s store.Store, key string, old store.Revision, value string) store.Revision {
	t.Helper()
	e, err := s.CompareAndSwap(context.Background(), key, old, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return e.Revision
}

// raw opens a file with the driver alone.
func raw(t *testing.T, path string, statements ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, true))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db
}

func TestASQLiteFileIsAStore(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		Open: func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "firn.db")) },
		Another: func(t *testing.T, s store.Store) store.Store {
			return open(t, s.(*sqliteStore).path)
		},
		Delete: func(t *testing.T, s store.Store, key string) {
			db := raw(t, s.(*sqliteStore).path)
			if _, err := db.Exec("DELETE FROM "+sqlstore.Table+" WHERE k = ?", key); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func TestWritesSurviveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "on", "the way", "firn.db")
	s := open(t, path)
	revision := put(t, s, "k", 0, "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := open(t, path).Get(context.Background(), "k")
	if err != nil || string(e.Value) != "v" || e.Revision != revision {
		t.Errorf("%q of %d, %v", e.Value, e.Revision, err)
	}
}

func TestAFileMayHaveAnyName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{":memory:", "a b.db", "a?b=c.db", "a%20b.db", "a#b.db", "relative/a@b.db", ".//x.db", "//" + t.TempDir() + "/x.db"} {
		put(t, open(t, name), "k", 0, name)
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
		if e, err := open(t, name).Get(context.Background(), "k"); err != nil || string(e.Value) != name {
			t.Errorf("%q: a second handle got %q, %v", name, e.Value, err)
		}
	}
}

// After a link, ".." is the folder above the link's target.
func TestAPathIsResolvedAsByTheSystem(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "disk", "below")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(below, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	put(t, open(t, dir+"/link/../firn.db"), "k", 0, "v")
	if _, err := open(t, filepath.Join(dir, "disk", "firn.db")).Get(context.Background(), "k"); err != nil {
		t.Error(err)
	}
}

func TestADatabaseInMemoryIsRefused(t *testing.T) {
	for _, dsn := range []string{":memory:", "", "file:x?mode=memory&cache=shared"} {
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Open(context.Background(), db, sqlstore.SQLite); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "memory") {
			t.Errorf("%q: %v", dsn, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A mistyped path would be another, empty store, and without a busy timeout the second of two processes that start
// fails.
func TestALibrarysSQLiteStoreIsMadeOnPurposeAndWaitsForOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	ctx := context.Background()
	for _, step := range []struct {
		dsn  string
		open func(context.Context, *sql.DB, sqlstore.Dialect) (*sqlstore.Store, error)
		by   sqlstore.Dialect
		want error
		says string
	}{
		{"?_pragma=busy_timeout(1000)", sqlstore.Open, sqlstore.SQLite, store.ErrNotFound, "sqlstore.Create"},
		{"", sqlstore.Create, sqlstore.SQLite, store.ErrRefused, "_pragma=busy_timeout(10000)"},
		{"?_pragma=busy_timeout(1000)", sqlstore.Open, sqlstore.SQLite, store.ErrNotFound, "name another path"},
		{"?_pragma=busy_timeout(1000)", sqlstore.Create, sqlstore.SQLite, nil, ""},
		{"?_pragma=busy_timeout(1000)", sqlstore.Open, sqlstore.SQLite, nil, ""},
		{"?_pragma=busy_timeout(1000)", sqlstore.Create, sqlstore.SQLite, nil, ""},
		{"", sqlstore.Open, sqlstore.Postgres, nil, "is postgres the dialect of the driver's database?"},
		{"", sqlstore.Open, sqlstore.Dialect{}, store.ErrRefused, "SQLite, MySQL and Postgres"},
	} {
		db, err := sql.Open("sqlite", "file:"+path+step.dsn)
		if err != nil {
			t.Fatal(err)
		}
		_, err = step.open(ctx, db, step.by)
		if step.says == "" && err != nil || step.says != "" && (err == nil || !strings.Contains(err.Error(), step.says)) || step.want != nil && !errors.Is(err, step.want) {
			t.Errorf("%+v: %v", step, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	raw(t, path, "DROP TABLE "+sqlstore.Table)
	if _, err := Open(ctx, "sqlite:"+path); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "firn store make") {
		t.Errorf("a file without the table: %v", err)
	}
}

// SQLite has a separate log and locks for each name.
func TestAFileWithTwoNamesIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	put(t, open(t, path), "k", 0, "v")
	if err := os.Link(path, path+".2"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".2"} {
		if _, err := Open(context.Background(), "sqlite:"+name); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "2 names") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManyProcessesLoseNoWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db") // they race to create it, too
	const processes = 12
	var group sync.WaitGroup
	for range processes {
		group.Go(func() {
			if out, err := start("count", path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	e, err := open(t, path).Get(context.Background(), "counter")
	if want := strconv.Itoa(processes * eachChild); err != nil || string(e.Value) != want {
		t.Errorf("counted to %q, %v; want %s", e.Value, err, want)
	}
}

func TestANewFileCanBeOpenedConcurrently(t *testing.T) {
	for range 40 {
		path := filepath.Join(t.TempDir(), "firn.db")
		begin := make(chan struct{})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				<-begin
				s, err := Create(context.Background(), "sqlite:"+path)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := increment(context.Background(), s); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		group.Wait()
		if e, err := open(t, path).Get(context.Background(), "counter"); err != nil || string(e.Value) != "8" {
			t.Fatalf("counted to %q, %v", e.Value, err)
		}
	}
}

func TestAProcessKilledWhileWritingLeavesAnIntactFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	for round := range 8 {
		cmd := start("forever", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, last := bufio.NewScanner(out), 0
		for i := 0; lines.Scan(); i++ {
			if last, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if i == 5+7*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the process ended before it was killed")
		}
		s := open(t, path)
		n, err := increment(context.Background(), s)
		// One write more than was acknowledged may have been applied.
		if err != nil || n != last+1 && n != last+2 {
			t.Errorf("round %d: counted to %d, %v, after %d was acknowledged", round, n, err, last)
		}
		var check string
		if err := raw(t, path).QueryRow("PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
			t.Errorf("round %d: %s, %v", round, check, err)
		}
	}
}

func TestACallWaitsForALockedFileUntilItsContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	s := open(t, path)
	revision := put(t, s, "k", 0, "v")
	lock := raw(t, path, "BEGIN IMMEDIATE")

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := s.CompareAndSwap(ctx, "k", revision, []byte("w"))
	if !errors.Is(err, context.DeadlineExceeded) || store.Unapplied(err) || !strings.Contains(err.Error(), path) {
		t.Errorf("a locked file: %v", err)
	}
	if waited := time.Since(begun); waited > 5*time.Second {
		t.Errorf("waited %v with a deadline of 50 ms", waited)
	}
	if _, err := s.Get(context.Background(), "k"); err != nil {
		t.Errorf("a read during another's write: %v", err)
	}
	if _, err := lock.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", revision, "w")
}

func TestAnExclusivelyLockedFileIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	raw(t, path, "PRAGMA journal_mode = DELETE", "PRAGMA locking_mode = EXCLUSIVE", "CREATE TABLE x (y)")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := Open(ctx, "sqlite:"+path)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if waited := time.Since(begun); waited > 5*time.Second {
		t.Errorf("waited %v with a deadline of 50 ms", waited)
	}
}

func TestAFullFileIsReportedAndKeepsItsContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.db")
	revision := put(t, open(t, path), "k", 0, "v")
	db := raw(t, path, "PRAGMA max_page_count = 5")
	inner, err := sqlstore.Open(context.Background(), db, sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	s := &sqliteStore{Store: inner, path: path}
	_, err = s.CompareAndSwap(context.Background(), "big", 0, make([]byte, store.MaxValueBytes))
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "free space") {
		t.Errorf("a full file: %v", err)
	}
	if _, err := s.Get(context.Background(), "big"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the value that did not fit: %v", err)
	}
	put(t, s, "k", revision, "w")
}
