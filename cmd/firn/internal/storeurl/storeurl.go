// Package storeurl opens the store that a URL names.
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

	_ "modernc.org/sqlite" // the driver "sqlite": pure Go, so the binary needs no C

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/sqlstore"
)

// Supported says which URLs Open takes, for messages and help.
const Supported = "memory: and sqlite:PATH"

// Open opens the store of a URL. No error repeats a password in it.
func Open(ctx context.Context, text string) (store.Store, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case !ok:
		return nil, fmt.Errorf("store %q has no scheme: %s are supported, as in sqlite:%s", text, Supported, text)
	case scheme == "memory" && rest == "":
		return memstore.New(nil), nil
	case scheme == "memory":
		return nil, fmt.Errorf("store %q: memory: takes nothing after the colon", Redact(text))
	case scheme == "sqlite":
		return openSQLite(ctx, rest)
	default:
		return nil, fmt.Errorf("store %q: unknown scheme %q: %s are supported", Redact(text), scheme, Supported)
	}
}

// Redact returns a store URL without its password, for people to read.
func Redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		scheme, _, _ := strings.Cut(text, ":")
		return scheme + ":…" // whatever it is, it may hold a password
	}
	return u.Redacted()
}

// busyMillis is how long a writer waits for others on the same file. Writes
// take a few milliseconds, so this is a queue of thousands.
const busyMillis = 20_000

// openSQLite opens a file that other processes may have open too.
//
// The journal is a write-ahead log, and each commit is synced: a fence that was
// confirmed must survive a loss of power, or a later process could be granted
// times already used.
func openSQLite(ctx context.Context, path string) (store.Store, error) {
	if path == "" {
		return nil, errors.New("store sqlite: has no path: write sqlite:PATH, as in sqlite:/var/lib/firn/firn.db")
	}
	if err := usable(path); err != nil {
		return nil, fmt.Errorf("store sqlite:%s: %w", path, err)
	}
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busyMillis),
			"journal_mode(" + journalMode + ")",
			"synchronous(FULL)",
		},
		"_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("store sqlite:%s: %w", path, err)
	}
	db.SetMaxOpenConns(1) // within a process, queue here rather than at the file's lock
	s, err := sqlstore.New(ctx, db, sqlstore.SQLite)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store sqlite:%s: %w", path, err), db.Close())
	}
	return s, nil
}

var journalMode = "WAL"

// usable looks for what SQLite would only call "unable to open database file",
// and makes the folder.
func usable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("make its folder: %w; name a path that may be written", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w; name a path that may be written", err)
	case info.IsDir():
		return errors.New("it is a directory: name a file in it, as in sqlite:" + filepath.Join(path, "firn.db"))
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is no regular file (%s): name another path", info.Mode().Type())
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w; the file must be writable", err)
	}
	return f.Close()
}
