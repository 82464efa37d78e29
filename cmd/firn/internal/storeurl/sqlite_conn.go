package storeurl

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// connector configures each new connection. The driver could do so, but would wait for a locked file
// regardless of the context.
type connector struct {
	driver.Connector
	path   string
	makes  bool        // it creates the file and the table, but only until opened is set
	opened atomic.Bool // the store is open
}

// Connect implements [driver.Connector].
//
// The journal is a write-ahead log, and each commit is synced: a confirmed fence must survive a power
// failure, or a later process could be granted times already used. A process that opens, lists, writes
// twice and closes syncs 6 times with the log (alone adds one, for the first process) and 10 times with a
// truncated journal. With syncs of 5 ms that took 37 ms instead of 60; with 10 ms and 16 processes at a
// time, one process in 200 was still locked out after [busyTimeout] with the journal, and never with the
// log.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	before, err := os.Stat(c.path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = checkOpenable(c.path) // the file may have changed since the start
	} else {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	switch {
	case errors.Is(err, errNoStore) && c.opened.Load():
		return nil, errGone
	case err != nil && (!c.makes || !errors.Is(err, errNoStore)):
		return nil, err
	}
	if before != nil {
		if err := c.alone(ctx); err != nil {
			return nil, err
		}
	}
	inner, err := c.bare(ctx)
	if err != nil {
		return nil, err
	}
	statements := []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "SELECT 1 FROM sqlite_schema"} // the read opens the log
	if !c.makes && !c.opened.Load() {
		statements = slices.Insert(statements, 0, findTable) // a database of another program stays as it is
	}
	for _, statement := range statements {
		err := retryBusy(ctx, func() error {
			_, err := inner.ExecContext(ctx, statement, nil)
			return err
		})
		if failed, ok := errors.AsType[*sqlite.Error](err); ok && statement == findTable && failed.Code() == sqlite3.SQLITE_ERROR {
			err = errNoStore
		}
		if err != nil {
			return nil, errors.Join(err, inner.Close())
		}
	}
	opened := &conn{sqliteConn: inner}
	if opened.files, err = openFiles(c.path); err == nil {
		opened.life, err = lifeOf(c.path)
	}
	if err != nil || before != nil && !os.SameFile(before, opened.files[0].info) || opened.replaced() {
		return nil, errors.Join(errReplaced, err, inner.Close())
	}
	return opened, nil
}

func (c *connector) bare(ctx context.Context) (sqliteConn, error) {
	bare, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := bare.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T cannot be set up", bare), bare.Close())
	}
	return inner, nil
}

// alone makes sure, where the log or its index is missing, that no process has the file open: SQLite
// would create them beside the removed ones, with locks of their own, and a process that is still in a
// write by the old ones would write over what was confirmed since. A process holds the file locked as long
// as it has it open, and releases it at the next call after they were removed.
//
// A connection in exclusive mode opens the log with the whole file locked, and without the index. It
// writes what a crash left in the log to the file.
func (c *connector) alone(ctx context.Context) error {
	used := false
	err := retryBusy(ctx, func() error {
		if _, err := openFiles(c.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		inner, err := c.bare(ctx)
		if err != nil {
			return err
		}
		for _, statement := range []string{"PRAGMA busy_timeout = 0", "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = FULL", "SELECT 1 FROM sqlite_schema"} {
			if _, err = inner.ExecContext(ctx, statement, nil); err != nil {
				break
			}
		}
		used = used || busy(err)
		return errors.Join(err, inner.Close())
	})
	if err != nil && used {
		err = fmt.Errorf("%w: its -wal or -shm file is missing, and another process uses it: end all that do: %w", store.ErrUnavailable, err)
	}
	return err
}

// findTable fails with SQLITE_ERROR if there is no table of that name.
const findTable = "SELECT 1 FROM " + sqlstore.Table + " LIMIT 0"

// errGone is the error of a call whose file is missing, perhaps only for a moment because its disk was
// unmounted. A new file in its place, below the mount point, would be a second store, while other
// processes still have the first one open.
var errGone = fmt.Errorf("%w: the file is gone: put it back, or end all that use it, and make an empty one with firn store make", store.ErrUnavailable)

// errReplaced is the error of a write that may have gone to a file that no longer exists.
var errReplaced = fmt.Errorf("%w: the file was removed or replaced while in use: first end all processes that use it", store.ErrUnavailable)

// sqliteConn lists the methods of the driver's connections that database/sql calls.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// conn is a connection that is good as long as the paths of the file, its log and the log's index name
// its open files. SQLite would keep using a removed or replaced file for ever, and acknowledge each
// write to it: a holder would renew its slot where no other process reads, and never see that its
// worker was granted again. Losing one of the three is enough: the latest commits are only in the log,
// and the locks are on the index.
//
// database/sql closes a bad connection before it opens the next, and there is only one at a time. That
// order matters: closing any handle on a file, including a log that both share, drops the locks that
// this process holds on it through other handles.
type conn struct {
	sqliteConn
	files [3]openFile
	life  string // of the store in the file
}

// An openFile is a file that a connection has open, with the path it was opened by.
type openFile struct {
	path string
	info fs.FileInfo
}

// openFiles returns the file at path, its log and the log's index; SQLite keeps the latter two beside
// the link's target. They exist as long as any process has the file open.
func openFiles(path string) (files [3]openFile, err error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return files, err
	}
	for i, name := range []string{path, target + "-wal", target + "-shm"} {
		files[i].path = name
		if files[i].info, err = os.Stat(name); err != nil {
			return files, err
		}
	}
	return files, nil
}

// replaced reports whether a path now names another file, or no file.
func (c *conn) replaced() bool {
	return slices.ContainsFunc(c.files[:], func(f openFile) bool {
		now, err := os.Stat(f.path)
		return err != nil || !os.SameFile(now, f.info)
	})
}

// ResetSession implements [driver.SessionResetter]: database/sql calls it before each use of a
// connection except the first.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.replaced() {
		return driver.ErrBadConn // so that database/sql opens another one, by the path
	}
	return c.sqliteConn.ResetSession(ctx)
}

// ExecContext implements [driver.ExecerContext]. It checks again after the write, and does not return
// [driver.ErrBadConn], because database/sql would then repeat the write.
func (c *conn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.sqliteConn.ExecContext(ctx, statement, args)
	if err == nil && c.replaced() {
		return nil, errReplaced
	}
	return result, err
}

// retryBusy retries where SQLite ignores its busy timeout: the first processes on a new file may turn
// its log on at the same time, and then all but one get a busy error at once (about one start in 300,
// of 16 at the same moment).
func retryBusy(ctx context.Context, do func() error) error {
	for begun := time.Now(); ; {
		err := do()
		if !busy(err) || time.Since(begun) >= busyTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

// busy reports whether another user of the file has it locked.
func busy(err error) bool {
	failed, ok := errors.AsType[*sqlite.Error](err)
	return ok && failed.Code()&0xff == sqlite3.SQLITE_BUSY
}
