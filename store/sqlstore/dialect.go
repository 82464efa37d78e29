package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
)

// A Dialect is what differs between databases: [SQLite], [MySQL] (MariaDB too)
// and [Postgres].
type Dialect struct {
	name     string
	embedded bool

	probe, create, get, insert, update, list string

	// swap runs a write on one session. It says whether a row was changed and, if
	// so, by which life of the database; with an error that is not known.
	swap func(ctx context.Context, s *Store, conn *sql.Conn, w write) (changed bool, life string, err error)
	// clock reads the database's clock, as microseconds since 1970. Nil: that is
	// the clock of this host.
	clock func(ctx context.Context, s *Store, conn *sql.Conn) (int64, error)
	// fit says why a read on a session found nothing: nil if there is nothing, and
	// an error that is errUnfit if the session may not be used. Nil: all may.
	fit func(ctx context.Context, s *Store, conn *sql.Conn) error
	ask func(driverConn any) Session

	missing  func(err error) bool            // whether err may say that the table does not exist
	undone   func(err error) bool            // whether err says that a statement lost to others and was taken back. Nil: never
	classify func(err error) (string, error) // a way out, and the kind of err as store tells them apart
	examine  func(ctx context.Context, conn *sql.Conn) ([]store.Finding, error)
}

// String returns the dialect's name.
func (d Dialect) String() string { return d.name }

// Schema is the statement that makes the table, for accounts that may not make
// tables themselves. Whoever only uses it needs to select, insert and update.
func (d Dialect) Schema() string { return d.create }

// callTimeout bounds a call to a database on another host whose context does
// not end earlier. SQLite has its busy timeout.
const callTimeout = 10 * time.Second

// bound bounds ctx, unless the database is embedded.
func (d Dialect) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.embedded {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, callTimeout,
		fmt.Errorf("%w: no answer within %v", store.ErrUnavailable, callTimeout))
}

// unanswered says what kind an error is that is not from the database: about the
// connection to it, and so the third outcome of a write.
func unanswered(err error) (hint string, kind error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", nil
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrUnavailable): // of our own, or of what dials
		return "", nil
	case strings.Contains(err.Error(), "TLS"):
		return "it does not speak TLS: leave that out of the URL", store.ErrUnavailable
	default:
		return "", store.ErrUnavailable
	}
}
