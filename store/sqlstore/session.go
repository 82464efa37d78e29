package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// A Session is what a driver's connection knows of its session and database/sql
// does not tell.
type Session struct {
	// Life names the life of the database, see [store.Entry]; read after a write.
	Life string
	// Warning is a warning of the server that came since it was asked for last.
	Warning string
}

// WithSession returns the dialect with a function that asks the driver's
// connection, as in [sql.Conn.Raw], right before and right after each write. The
// package comment has the one that [Postgres] needs with pgx.
func (d Dialect) WithSession(ask func(driverConn any) Session) Dialect {
	d.ask = ask
	return d
}

// seen asks the driver's connection.
func (d Dialect) seen(conn *sql.Conn) (seen Session) {
	if d.ask != nil {
		// An error would be that of ask, or say that the connection is closed.
		_ = conn.Raw(func(driverConn any) error {
			seen = d.ask(driverConn)
			return nil
		})
	}
	return seen
}

// A write is the statement of a compare-and-swap.
type write struct {
	statement string
	args      []any
}

// run returns how many rows the statement changed.
func (w write) run(ctx context.Context, conn *sql.Conn, guard ...any) (changed int64, err error) {
	result, err := conn.ExecContext(ctx, w.statement, append(w.args[:len(w.args):len(w.args)], guard...)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// errUnfit marks a session that is set so that the store would not keep its
// contract. It is closed, since the next one may be set otherwise.
var errUnfit = fmt.Errorf("%w: the session is unfit", store.ErrRefused)

// unconfirmed is the outcome of a write that was applied and may not survive. It
// wraps no other error: that something else was refused says nothing of the write.
func unconfirmed(format string, args ...any) error {
	return fmt.Errorf("%w: the write was applied and not confirmed: %s", store.ErrUnavailable, fmt.Sprintf(format, args...))
}

// fit returns why a session that found nothing may not be used, or nil.
func (s *Store) fit(ctx context.Context, conn *sql.Conn) error {
	if s.dialect.fit == nil {
		return nil
	}
	return s.dialect.fit(ctx, s, conn)
}

// call makes a call on one session within its bounds and says what went wrong.
func (s *Store) call(ctx context.Context, op, key string, do func(context.Context, *sql.Conn) error) error {
	bounded, cancel := s.dialect.bound(ctx)
	defer cancel()
	// All idle connections may have been ended by the server. Then each says before
	// it sends anything that it is bad, and the next is tried.
	err := s.once(bounded, do)
	for tries := s.db.Stats().OpenConnections + 2; errors.Is(err, driver.ErrBadConn) && tries > 0; tries-- {
		err = s.once(bounded, do)
	}
	if err != nil {
		return s.wrap(bounded, op, key, err)
	}
	return nil
}

// once makes a call on the next session that is free.
func (s *Store) once(ctx context.Context, do func(context.Context, *sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // back to the others, unless it is bad
	if err = do(ctx, conn); errors.Is(err, errUnfit) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// onTable makes a call that needs the table. Where the table is missing, it makes
// it and tries once more: a database that was wiped under its users is an empty
// store to them, in which they write anew what they hold. A statement that
// found no table was not applied, so a second try is no second write.
func (s *Store) onTable(ctx context.Context, op, key string, do func(context.Context, *sql.Conn) error) error {
	return s.call(ctx, op, key, func(ctx context.Context, conn *sql.Conn) error {
		try := func() error { return s.persist(ctx, func() error { return do(ctx, conn) }) }
		err := try()
		if err == nil || !s.dialect.missing(err) {
			return err
		}
		if err := s.makeTable(ctx, conn); err != nil {
			return err
		}
		return try()
	})
}

// undoneTries is how often a statement is tried that others undo. The next try
// sees what they wrote, and so nearly always ends in a conflict or an answer.
const undoneTries = 10

// persist does a statement anew that was taken back since others were at the
// same row, which certainly has changed nothing. Where that is how a database
// says that a race was lost, the next try says so in our words.
func (s *Store) persist(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || s.dialect.undone == nil || !s.dialect.undone(err) || try == undoneTries || ctx.Err() != nil {
			return err
		}
	}
}

// makeTable makes the table that was found missing.
func (s *Store) makeTable(ctx context.Context, conn *sql.Conn) error {
	_, makeErr := conn.ExecContext(ctx, s.dialect.create)
	// A table that was there with other columns looked missing, and was left
	// alone; one that others made at the same moment may be an error, and is there.
	if err := s.probe(ctx, conn); err == nil || makeErr == nil {
		return err
	}
	return fmt.Errorf("make it: %w; if the account may not, have it made by one that may: %s", makeErr, s.dialect.create)
}

// probe asks for the table's columns and no row.
func (s *Store) probe(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, s.dialect.probe)
	if err != nil {
		return err
	}
	return errors.Join(rows.Err(), rows.Close())
}
