package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firn-id/firn/store"
)

// SQLite is the dialect of a file that several processes on one host share.
// Open it with a busy timeout, since its writers take turns. Which error means
// what is told by the driver's method Code() int, as modernc.org/sqlite has it.
var SQLite = Dialect{
	name:     "sqlite",
	embedded: true,
	probe:    `SELECT k, v, rev FROM ` + Table + ` LIMIT 0`,
	create: `CREATE TABLE IF NOT EXISTS ` + Table + ` (
		k TEXT PRIMARY KEY, v BLOB NOT NULL, rev INTEGER NOT NULL) WITHOUT ROWID`,
	get:    `SELECT v, rev FROM ` + Table + ` WHERE k = ?`,
	insert: `INSERT INTO ` + Table + ` (k, v, rev) VALUES (?, ?, ?) ON CONFLICT (k) DO NOTHING`,
	update: `UPDATE ` + Table + ` SET v = ?, rev = ? WHERE k = ? AND rev = ?`,
	list:   `SELECT k, v, rev FROM ` + Table + ` WHERE k >= ? AND k < ? ORDER BY k`,

	swap:     swapPlain,
	missing:  func(err error) bool { return sqliteCode(err) == sqliteError },
	classify: classifySQLite,
}

// swapPlain runs a write whose session needs no guard and no confirmation.
func swapPlain(ctx context.Context, s *Store, conn *sql.Conn, w write) (changed bool, life string, err error) {
	n, err := w.run(ctx, conn)
	return n > 0, s.dialect.seen(conn).Life, err
}

// SQLite's primary result codes, https://www.sqlite.org/rescode.html.
const (
	sqliteError    = 1
	sqlitePerm     = 3
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteReadonly = 8
	sqliteIOErr    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteProtocol = 15
	sqliteAuth     = 23
	sqliteNotADB   = 26
)

// sqliteCode returns the primary result code in err, or 0.
func sqliteCode(err error) int {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code() & 0xff
	}
	return 0
}

// classifySQLite calls refused only what is certainly not applied: errors that
// SQLite finds before it writes. Each of our statements is a transaction of its
// own, so sqliteError, from parsing it, is one. A damaged page may be met
// anywhere, in taking back a write too, so sqliteCorrupt is not.
func classifySQLite(err error) (hint string, kind error) {
	switch sqliteCode(err) {
	case sqliteBusy, sqliteLocked, sqliteProtocol: // the last: a log's locks were always taken
		return "another process holds the file locked: end it or try again", store.ErrUnavailable
	case sqliteFull:
		return "free space on its disk", store.ErrUnavailable
	case sqliteIOErr:
		return "reading or writing the file went wrong: check its disk", store.ErrUnavailable
	case sqliteCantOpen:
		return "the path must be a file in a folder that exists and may be written", store.ErrUnavailable
	case sqliteCorrupt:
		return "the file is damaged: restore or repair it, or name another path", store.ErrUnavailable
	case sqliteReadonly, sqlitePerm, sqliteAuth:
		return "the file and its folder must be writable", store.ErrRefused
	case sqliteNotADB:
		return "the file is no SQLite database: move it away, or name another path", store.ErrRefused
	case sqliteError:
		return "the table " + Table + " is not one of Firn's: rename it, or name another path", store.ErrRefused
	default:
		return "", nil
	}
}
