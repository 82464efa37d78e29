package storeurl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite" // pure Go, so the binary needs no C

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// busyTimeout is how long a call waits for other users of the file, or less if its context ends
// sooner. Writes take a few milliseconds, so this is a queue of thousands.
const busyTimeout = 10 * time.Second

// sqliteStore adds its file to errors; the driver leaves it out.
type sqliteStore struct {
	store.Store
	path string
}

// sqliteFile opens a file that other processes may also have open. If makes is set, it creates the
// store if the file has none.
func sqliteFile(ctx context.Context, path string, makes bool) (store.Store, error) {
	if err := checkPath("sqlite", path, "PATH", "/var/lib/firn/firn.db"); err != nil {
		return nil, err
	}
	s := &sqliteStore{path: path}
	if err := checkOpenable(path); err != nil && (!makes || !errors.Is(err, errNoStore)) {
		return nil, s.name(err)
	}
	if makes {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, s.name(fmt.Errorf("%w: make its folder: %w; name a path that may be written", store.ErrUnavailable, err))
		}
		if err := overNetwork(filepath.Dir(path)); err != nil {
			return nil, s.name(err)
		}
	}
	base, err := sqlite.NewConnector(dsn(path, makes))
	if err != nil {
		return nil, s.name(err)
	}
	c := connector{Connector: base, path: path, makes: makes}
	db := sql.OpenDB(&c)
	// Within a process, queue here rather than at the file's lock. More than one connection would also
	// break the closing of a connection to a replaced file, see conn.
	db.SetMaxOpenConns(1)
	dialect := sqlstore.SQLite.WithSession(func(c any) (seen sqlstore.Session) {
		if c, ok := c.(*conn); ok {
			seen.Life = c.life
		}
		seen.Idle = true // no other program uses the connection
		return seen
	})
	open := sqlstore.Open
	if makes {
		open = sqlstore.Create
	}
	if s.Store, err = open(ctx, db, dialect); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = errNoStore
		}
		return nil, errors.Join(s.name(err), s.name(db.Close()))
	}
	c.opened.Store(true)
	return s, nil
}

// errNoStore: only firn store make creates a store, so that a path with a mistake does not become
// another, empty store, whose ids repeat.
var errNoStore = fmt.Errorf("%w: there is no store in it: name another path, or create one with firn store make", store.ErrNotFound)

// dsn returns the driver's name for path. SQLite creates a missing file if makes is set.
func dsn(path string, makes bool) string {
	// Not cleaned: after a link, a cleaned path could name another file.
	for strings.HasPrefix(path, "//") { // the driver would take it for a host
		path = path[1:]
	}
	if !filepath.IsAbs(path) {
		path = "./" + path // otherwise :memory: would be a private database instead of a file
	}
	query := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())}, "mode": {"rw"}}
	if makes {
		query.Set("mode", "rwc")
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}
	return u.String()
}

// checkOpenable finds errors for which SQLite would only report "unable to open database file". Its errors mean
// that nothing was written.
func checkOpenable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoStore
	case err != nil:
		return fmt.Errorf("%w: %w; name a path that may be written", store.ErrUnavailable, err)
	case info.IsDir():
		return fmt.Errorf("%w: it is a directory: name a file in it, as in sqlite:%s", store.ErrRefused, filepath.Join(path, "firn.db"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file (%s): name another path", store.ErrRefused, info.Mode().Type())
	}
	if err := access(path); err != nil {
		return fmt.Errorf("%w: %w; the file must be writable", store.ErrRefused, err)
	}
	if err := overNetwork(path); err != nil {
		return err
	}
	// SQLite keeps its log in the folder where it finds the file; if the file alone is mounted, that is
	// another folder.
	alone, err := mounted(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case alone:
		return fmt.Errorf("%w: the file is mounted without its folder, and would be a separate store here: mount the folder", store.ErrRefused)
	}
	return oneName(info)
}

// Traits implements [store.Store].
func (s *sqliteStore) Traits() store.Traits {
	of := s.Store.Traits()
	of.Examine = func(context.Context) ([]store.Finding, error) {
		found, err := examineFile(s.path)
		return found, s.name(err)
	}
	return of
}

func (s *sqliteStore) name(err error) error {
	if err == nil {
		return nil
	}
	return &fileError{s.path, err}
}

// A fileError is an error of a store in a file, and names the file.
type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return fmt.Sprintf("store sqlite:%s: %v", e.path, e.err) }

// Unwrap returns the cause.
func (e *fileError) Unwrap() error { return e.err }

// Public returns the error without the path, which clients must not learn.
func (e *fileError) Public() error { return e.err }

// Get implements [store.Store].
func (s *sqliteStore) Get(ctx context.Context, key string) (store.Entry, error) {
	entry, err := s.Store.Get(ctx, key)
	return entry, s.name(err)
}

// CompareAndSwap implements [store.Store].
func (s *sqliteStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	written, err := s.Store.CompareAndSwap(ctx, key, old, value)
	return written, s.name(err)
}

// List implements [store.Store].
func (s *sqliteStore) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	list, err := s.Store.List(ctx, prefix)
	return list, s.name(err)
}

// Close implements [store.Store].
func (s *sqliteStore) Close() error { return s.name(s.Store.Close()) }
