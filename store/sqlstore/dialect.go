package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
)

// A Dialect is what differs between databases: [SQLite], [MySQL] (MariaDB too)
// and [Postgres].
type Dialect struct {
	name     string
	embedded bool // on this host, whose clock is the only one

	create, probe, get, insert, update, list string

	// home asks for the schema that has the table, or is to have it, as statements write it; "" if
	// the session has none.
	home func(ctx context.Context, conn *sql.Conn) (schema string, err error)
	// swap runs a write on one session, and returns the life of the database that
	// confirmed it. If no row was changed, the error is [store.ErrConflict].
	swap func(ctx context.Context, s *Store, conn *sql.Conn, statement string, args []any) (life string, err error)
	// vet reads the database's clock, as microseconds since 1970. Its error is errUnfit
	// if the session may not be used.
	vet func(ctx context.Context, s *Store, conn *sql.Conn) (micros int64, err error)
	// guarded: statements find nothing on a session that may not be used.
	guarded bool
	ask     func(driverConn any) Session
	examine func(ctx context.Context, conn *sql.Conn) (examination, error)

	missing string // the code that says that there may be no table
	faults  []fault
}

// probe asks for the table's columns and no row.
const probe = `SELECT k, v, rev FROM ` + Table + ` LIMIT 0`

// A fault is what errors with some codes mean. Errors that are not listed are of no kind.
// A conflict is a statement that lost to others and was taken back.
type fault struct {
	codes string
	kind  error
	hint  string // a way out
}

// listed reports whether codes has a code, or its class: the first two characters of
// the five that a code of PostgreSQL has.
func listed(codes, code string) bool {
	list := strings.Fields(codes)
	return slices.Contains(list, code) || len(code) == 5 && slices.Contains(list, code[:2])
}

// classify returns a way out, and what kind of error err is. Refused is only what is
// certainly not applied.
func (d Dialect) classify(err error) (hint string, kind error) {
	code := codeOf(err)
	for _, f := range d.faults {
		if listed(f.codes, code) {
			return f.hint, f.kind
		}
	}
	switch {
	case code != "", errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", nil
	case errors.Is(err, store.ErrRefused): // of our own, or of what dials
		return "", store.ErrRefused
	case strings.Contains(err.Error(), "TLS"):
		return "it does not speak TLS: leave that out of the URL", store.ErrUnavailable
	default: // about the connection, and so the third outcome of a write
		return "", store.ErrUnavailable
	}
}

// in returns the dialect for the table of one schema. A session whose schema is changed later, by others
// who share the connections or the sessions of a pooler, would find another table, or none and make it.
func (d Dialect) in(schema string) Dialect {
	if schema == "" {
		return d
	}
	for _, statement := range []*string{&d.create, &d.probe, &d.get, &d.insert, &d.update, &d.list} {
		*statement = strings.ReplaceAll(*statement, Table, schema+"."+Table)
	}
	return d
}

// codeOf returns the database's name for an error; "": err is not from it. Drivers tell by
// a method, as those of PostgreSQL and SQLite, or by the text alone.
func codeOf(err error) string {
	var state interface{ SQLState() string }
	var result interface{ Code() int }
	switch {
	case errors.As(err, &state):
		return state.SQLState()
	case errors.As(err, &result):
		return strconv.Itoa(result.Code() & 0xff) // the primary result code
	}
	for ; err != nil; err = errors.Unwrap(err) {
		var number int
		if n, scanErr := fmt.Sscanf(err.Error(), "Error %d", &number); n == 1 && scanErr == nil {
			return strconv.Itoa(number)
		}
	}
	return ""
}

// String returns the dialect's name.
func (d Dialect) String() string { return d.name }

// Schema is the statement that makes the table, for accounts that may not make
// tables themselves. Whoever only uses it needs to select, insert and update.
func (d Dialect) Schema() string { return d.create }
