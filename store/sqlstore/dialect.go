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

// A Dialect holds the differences between databases: [SQLite], [MySQL] (MariaDB too), [Postgres].
type Dialect struct {
	name     string
	embedded bool // on this host, whose clock is the only one

	create, probe, get, insert, update, list string
	grant                                    string // the beginning of a statement that lets an account use the table
	account                                  string // queries the account, as grant names it; empty: the database has no accounts

	// home returns the quoted schema of the table, existing or new; "" if the session has no schema.
	home func(ctx context.Context, s *Store, conn *sql.Conn) (schema string, err error)
	// exists returns [store.ErrNotFound] if there is no table: then only [Create] creates one. Nil: Open does too.
	exists func(ctx context.Context, conn *sql.Conn) error
	// meant returns [store.ErrRefused] if a new table may be a second store that was not asked for. Nil: it never is.
	meant func(ctx context.Context, s *Store, conn *sql.Conn) error
	// read returns the statement of a read for the kind of server that was seen last. Nil: they are all the same.
	read func(s *Store, statement string) string
	// swap makes a write, and returns the life of the database that confirmed it. Its error
	// is [store.ErrConflict] if no row was changed.
	swap func(ctx context.Context, s *Store, conn *sql.Conn, statement string, args []any) (life string, err error)
	// vet reads the database's clock, in microseconds since 1970, and names the server of the session. Its
	// error is errUnfit for an unfit session.
	vet func(ctx context.Context, s *Store, conn *sql.Conn) (micros int64, server string, err error)
	// reads reports whether the server takes no writes, after a statement that found nothing: reads find nothing there,
	// and MySQL's on an unfit session neither. Nil: reads find what there is.
	reads    func(ctx context.Context, s *Store, conn *sql.Conn) (bool, error)
	cluster  string // queries a cluster's view of a write
	revision string // suffix of the column's type, in a database that truncates values that do not fit
	ask      func(driverConn any) Session
	examine  func(ctx context.Context, conn *sql.Conn) (examination, error)

	missing string // the code for a table that may be missing
	made    string // the codes for one that another session makes at this moment
	faults  []fault
}

// probe asks for the table's columns. It reads no page of the table, which may be damaged.
const probe = `SELECT k, v, rev FROM ` + Table + ` LIMIT 0`

// primaryHint is the hint of errors that mean the server takes no writes.
const primaryHint = "it is a replica, or read-only: name the primary"

// readOnlyHint is that of errors that a session gets too if its own transactions may only read.
const readOnlyHint = primaryHint + "; or, if the setting tx_read_only, transaction_read_only or default_transaction_read_only is on, turn it off"

const goneHint = "the table " + Table + " is gone: put it back, or restart Firn to begin with an empty one; or see where the name leads"

// A fault gives errors with some codes a meaning. A conflict is a statement undone in a race.
type fault struct {
	codes string
	kind  error
	hint  string // a way out
}

// undone is the kind of an error after which a write was certainly not applied, though a later one may be: to repeat it at
// once is in vain, and callers may try again.
type undone struct{}

func (undone) Error() string { return store.ErrUnavailable.Error() }
func (undone) Is(target error) bool {
	return target == store.ErrUnavailable || target == store.ErrRefused
}

// classify returns an error's kind and a hint. ErrRefused: a write was certainly not applied.
func (d Dialect) classify(err error) (hint string, kind error) {
	if strings.Contains(err.Error(), "unsupported startup parameter") { // PgBouncer has one code for most of its errors
		return poolerHint, store.ErrRefused
	}
	code := codeOf(err)
	for _, f := range d.faults {
		codes := strings.Fields(f.codes)
		// The first two of the five characters of PostgreSQL's codes are the class.
		if slices.Contains(codes, code) || len(code) == 5 && slices.Contains(codes, code[:2]) {
			return f.hint, f.kind
		}
	}
	switch {
	case code != "", errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", nil
	case errors.Is(err, store.ErrRefused): // our own error, or the dialer's
		return "", store.ErrRefused
	case strings.Contains(err.Error(), "TLS"):
		return "it does not speak TLS: leave that out of the URL", store.ErrUnavailable
	default: // about the connection: the outcome of a write is unknown
		return "", store.ErrUnavailable
	}
}

// in returns the dialect for one schema, whatever schema another user of the connection switched to.
func (d Dialect) in(schema string) Dialect {
	if schema == "" {
		return d
	}
	table := schema + "." + Table
	quoted := "'" + strings.ReplaceAll(table, "'", "''") + "'"
	if strings.Contains(table, `\`) { // an escape for some sessions of PostgreSQL only, unless E says so
		quoted = " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	named := strings.NewReplacer("'"+Table+"'", quoted, Table, table)
	for _, statement := range []*string{&d.create, &d.probe, &d.get, &d.insert, &d.update, &d.list, &d.grant, &d.cluster} {
		*statement = named.Replace(*statement)
	}
	return d
}

// codeOf returns the database's code for an error, "" for other errors. Drivers of PostgreSQL and SQLite
// have a method for it, those of MySQL only the text.
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

// Schema is the statement that creates the table, for accounts without the privilege to do so. To use the
// table they need SELECT, INSERT and UPDATE.
func (d Dialect) Schema() string { return d.create }
