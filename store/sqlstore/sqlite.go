package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/firn-id/firn/store"
)

// SQLite is the dialect of a file that several processes on one host share. Open it with a busy timeout,
// since its writers take turns (a session without one is refused), and with journal_mode WAL and
// synchronous FULL:
//
//	db, err := sql.Open("sqlite", "file:/srv/firn.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
//	s, err := sqlstore.Open(ctx, db, sqlstore.SQLite) // once, to create the store: sqlstore.Create
//
// Weaker settings lose confirmed writes in a power failure. So does the default, a deleted journal: its
// deletion is not synced, unless synchronous is EXTRA, and undoes the write if it is lost. The driver's
// errors must have the method Code() int, as those of modernc.org/sqlite. A database in memory is refused:
// each connection would have another.
//
// SQLite keeps using a file that is removed or replaced while it is open, and other processes use the new one. So
// calls return [store.ErrUnavailable] while the file is missing; the new one is used once no connection of the *sql.DB
// has the old one open. The store knows the file that is there when it is opened: open it before anything else uses the
// *sql.DB, whose connections could have a file open that was replaced since. Neither SQLite nor the store notices that
// the log beside the file, or a symbolic link to it, is removed or replaced, or hard links; the binary does.
var SQLite = sqliteDialect

var sqliteDialect = Dialect{
	name:     "sqlite",
	embedded: true,
	create:   `CREATE TABLE IF NOT EXISTS ` + Table + ` (k TEXT PRIMARY KEY, v BLOB NOT NULL, rev INTEGER NOT NULL) WITHOUT ROWID`,
	probe:    probe,
	get:      `SELECT k, v, rev FROM ` + Table + ` WHERE k = ?`,
	insert:   `INSERT INTO ` + Table + ` (k, v, rev) VALUES (?, ?, ?) ON CONFLICT (k) DO NOTHING`,
	update:   `UPDATE ` + Table + ` SET v = ?, rev = ? WHERE k = ? AND rev = ?`,
	list:     `SELECT k, v, rev FROM ` + Table + ` WHERE k >= ? AND k < ? ORDER BY k`,

	home: func(ctx context.Context, s *Store, conn *sql.Conn) (string, error) {
		return "main", each(ctx, conn, func(rows *sql.Rows) error {
			var (
				file    sql.NullString
				timeout int64
			)
			if err := rows.Scan(&file, &timeout); err != nil {
				return err
			}
			switch {
			case file.String == "":
				return fmt.Errorf("%w: the database is in memory, and each connection has one of its own: name a file, or use memstore", store.ErrRefused)
			case timeout <= 0:
				return fmt.Errorf("%w: the session has no busy timeout, so it fails while another process writes: add _pragma=busy_timeout(10000) to the data source name, or what your driver has for it", store.ErrRefused)
			}
			if s.dialect.ask == nil {
				s.file.Store(openedFile(file.String))
			}
			return nil
		}, `SELECT file, timeout FROM pragma_database_list, pragma_busy_timeout WHERE name = 'main'`)
	},
	exists: func(ctx context.Context, conn *sql.Conn) error {
		return each(ctx, conn, func(rows *sql.Rows) error {
			var there bool
			if err := rows.Scan(&there); err != nil || there {
				return err
			}
			return fmt.Errorf("%w: the file has no store: name another path, or create a store with sqlstore.Create", store.ErrNotFound)
		}, `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = '`+Table+`')`)
	},
	// A session needs no guard, and a write no confirmation.
	swap: func(ctx context.Context, s *Store, conn *sql.Conn, statement string, args []any) (life string, err error) {
		n, err := exec(ctx, conn, statement, args...)
		if err == nil && n == 0 {
			err = store.ErrConflict
		}
		if err == nil {
			err = s.file.Load().inPlace() // no other process may see the write
		}
		return s.dialect.seen(conn).Life, err
	},
	missing: "1",
	// The primary result codes, https://www.sqlite.org/rescode.html. ErrRefused covers what SQLite finds
	// before it writes, such as 1, a parse error; it may meet a damaged page (11) while it undoes a write.
	faults: []fault{
		{"1", store.ErrRefused, "the table " + Table + " is not one of Firn's: rename it, or name another path"},
		{"3 8 23", store.ErrRefused, "the file and its folder must be writable"},
		{"5 6 15", store.ErrUnavailable, "another process holds the file locked: end it or try again"},
		{"10", store.ErrUnavailable, "reading or writing the file went wrong: check its disk"},
		{"11", store.ErrUnavailable, "the file is damaged: restore or repair it, or name another path"},
		{"13", undone{}, "free space on its disk"}, // it is undone before the error is returned
		{"14", store.ErrUnavailable, "the path must be a file in a folder that exists and may be written"},
		{"26", store.ErrRefused, "the file is not a SQLite database: move it away, or name another path"},
	},
}

// A sqliteFile is the file that sessions have open; nil where the program itself or a driver's own file system has it.
type sqliteFile struct {
	path string
	info fs.FileInfo
}

func openedFile(path string) *sqliteFile {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	f := &sqliteFile{path, info}
	_ = f.inPlace() // Windows identifies a file when it is first compared
	return f
}

var (
	errGone     = fmt.Errorf("%w: the file is gone: put it back, or end all that use it", store.ErrUnavailable)
	errReplaced = fmt.Errorf("%w: the file was replaced while in use: first end all that use it", store.ErrUnavailable)
)

// inPlace returns an error if the path names no file, or another one than sessions have open.
func (f *sqliteFile) inPlace() error {
	if f == nil {
		return nil
	}
	now, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errGone // a new session could make an empty one: keep those there are
	case err == nil && !os.SameFile(f.info, now):
		err = errReplaced // a session has the old one or the new one open: it is not used again
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f.path, err)
	}
	return err
}
