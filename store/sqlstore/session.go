package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// A Session holds properties of a driver's connection that database/sql does not show.
type Session struct {
	Life    string // of the database, see [store.Entry]; read after a write
	Warning string // of the server, since the last query for it
	Idle    bool   // no transaction is open; otherwise a call fails
}

// WithSession returns the dialect with a function that queries the driver's connection, as in
// [sql.Conn.Raw], before and after each call, and after each write. The package comment has the function that
// [Postgres] needs with pgx. With [SQLite] it also says that the program itself makes sure that connections have the file
// open that their path names now: the store does not look.
func (d Dialect) WithSession(ask func(driverConn any) Session) Dialect {
	d.ask = ask
	return d
}

// seen queries the driver's connection.
func (d Dialect) seen(conn *sql.Conn) (seen Session) {
	if d.ask != nil {
		// The only error possible is that the connection is closed.
		_ = conn.Raw(func(driverConn any) error {
			seen = d.ask(unwrap(driverConn))
			return nil
		})
	}
	return seen
}

// idle reports whether no transaction is open, as far as the driver is asked.
func (d Dialect) idle(conn *sql.Conn) bool { return d.ask == nil || d.seen(conn).Idle }

// openHint explains a session that is not idle.
const openHint = "a transaction was left open on it, so that no write would be committed: end it, give the store connections of its own, " +
	"or have the pooler reset its sessions; and have the function of WithSession say when a session is Idle"

// errUnfit marks a session on which the store would break its contract. The store closes it: the next
// session may have other settings.
var errUnfit = fmt.Errorf("%w: the session is unfit", store.ErrRefused)

// unconfirmed is the outcome of a write that was applied and may not survive. It wraps no other error,
// whose kind would not describe this write.
func unconfirmed(format string, args ...any) error {
	return fmt.Errorf("%w: the write was applied and not confirmed: %s", store.ErrUnavailable, fmt.Sprintf(format, args...))
}

// exec returns how many rows a statement changed.
func exec(ctx context.Context, conn *sql.Conn, statement string, args ...any) (int64, error) {
	result, err := conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// each calls scan for each row that a statement returns.
func each(ctx context.Context, conn *sql.Conn, scan func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := conn.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := scan(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// registers reads registers, or only checks their table.
//
// A server that takes no writes may have been replaced, and then shows what was true before: it is not
// read. Otherwise a holder on an old connection would find its slot there, while the server that the name
// leads to has lost it.
//
// A write goes over the register that was read, so that must be the only one. A server that is not strict
// truncates a revision that its column cannot hold, always to the same one; and a key can appear twice in
// a table without its primary key, or with a table that inherits from it.
func (s *Store) registers(ctx context.Context, conn *sql.Conn, statement string, args ...any) (list []store.Entry, err error) {
	asked := statement
	if s.dialect.read != nil {
		asked = s.dialect.read(s, statement)
	}
	rows, err := conn.QueryContext(ctx, asked, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // a second close, or after another error
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("%w: malformed answer: it has no columns", store.ErrUnavailable)
	}
	if is := types[len(types)-1].DatabaseTypeName(); is != "" && !strings.HasSuffix(is, s.dialect.revision) {
		return nil, fmt.Errorf("%w: the column rev of %s is of type %s, which does not hold a revision: ALTER TABLE %[2]s MODIFY rev BIGINT NOT NULL", store.ErrRefused, Table, is)
	}
	for rows.Next() {
		var e store.Entry
		if err := rows.Scan(&e.Key, &e.Value, &e.Revision); err != nil {
			return nil, err
		}
		if n := len(list); n > 0 && list[n-1].Key == e.Key {
			return nil, fmt.Errorf("%w: the table %s has two rows of key %q, and either could be meant: remove the older one", store.ErrRefused, Table, e.Key)
		}
		list = append(list, e)
	}
	err = errors.Join(rows.Err(), rows.Close())
	if err != nil || len(list) > 0 || s.dialect.reads == nil {
		return list, err
	}
	reads, err := s.dialect.reads(ctx, s, conn)
	if err == nil && reads && statement != s.dialect.probe { // a server can be examined all the same
		err = fmt.Errorf("%w: %s", errUnfit, readOnlyHint)
	}
	return nil, err
}

// undoneTries bounds the tries of a statement that concurrent writers undo. Nearly always the second try
// sees their write; but above read committed PostgreSQL undoes an insert for each update of the row.
const undoneTries = 10

const opOpen = "open table"

// call makes a call on one session, bounded, and wraps its error. It tries again, on the next free
// session, where that certainly repeats no write:
//
//   - The session is bad, as all idle ones are that the server has ended. They say so before they send
//     anything; see CompareAndSwap for drivers that are wrong there.
//   - There is no table, and the store is opened: it makes one. Later it makes one only in a file that the
//     program itself looks after, and others may have removed for good. A database may be without its table for a
//     moment, while it is renamed in two steps or restored, and all would count on an empty one in its place.
//   - Others undid the statement. If that is how a database reports a lost race, the next try is a conflict.
func call[T any](ctx context.Context, s *Store, op, key string, do func(context.Context, *sql.Conn) (T, error)) (value T, err error) {
	if !s.dialect.embedded { // SQLite has its busy timeout
		bounded, cancel := backend.Bound(ctx)
		defer cancel()
		ctx = bounded
	}
	missing := op == opOpen || s.dialect.embedded && s.file.Load() == nil
	for bad, undone := s.db.Stats().OpenConnections+2, undoneTries-1; ; {
		value, err = once(ctx, s, do)
		if err == nil {
			return value, nil
		}
		_, kind := s.dialect.classify(err)
		switch {
		case bad > 0 && errors.Is(err, driver.ErrBadConn):
			bad--
		case missing && codeOf(err) == s.dialect.missing:
			missing = false
			if _, err := once(ctx, s, s.makeTable); err != nil {
				return value, s.wrap(ctx, op, key, err)
			}
		case undone > 0 && errors.Is(kind, store.ErrConflict) && ctx.Err() == nil:
			undone--
		default:
			return value, s.wrap(ctx, op, key, err)
		}
	}
}

// maxOverrun is how long a driver may take to end a call whose context has ended.
const maxOverrun = 100 * time.Millisecond

// once makes a call on the next free session.
//
// A call that a driver does not end with its context is abandoned, and keeps its session until it ends: a holder must be
// able to look by another one.
func once[T any](ctx context.Context, s *Store, do func(context.Context, *sql.Conn) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	conn, leave, err := s.session(ctx)
	if err != nil {
		return answer{}.value, err
	}
	got, begun := make(chan answer, 1), time.Now()
	call := func() {
		var a answer
		panicked := true
		func() {
			defer backend.Rescue(&a.err)
			a.err = s.use(conn, func() (err error) {
				if err = s.file.Load().inPlace(); err == nil {
					a.value, err = do(ctx, conn)
				}
				return err
			})
			panicked = false
		}()
		if ctx.Err() != nil && time.Since(begun) > silence {
			s.forget()
		}
		if panicked {
			go leave() // database/sql may hold its locks on the session for ever
		} else {
			leave() // before the answer: the caller's next call uses the same session
		}
		got <- a
	}
	if s.dialect.embedded {
		call()
	} else {
		go call()
	}
	if a, ok := await(ctx, got); ok {
		return a.value, a.err
	}
	if time.Since(begun) > silence {
		s.forget()
	}
	return answer{}.value, ctx.Err()
}

// await returns what a driver has returned, or false if it has not within maxOverrun of the end of ctx. Some drivers leave
// a call, or an attempt to connect, to a silent server for as long as it is silent.
func await[T any](ctx context.Context, got <-chan T) (answer T, ok bool) {
	select {
	case answer = <-got:
		return answer, true
	case <-ctx.Done():
	}
	select {
	case answer = <-got: // most drivers end it themselves, and know more
		return answer, true
	case <-time.After(maxOverrun):
		return answer, false
	}
}

// silence is how long a session may leave a call unanswered until the idle ones are not trusted either.
const silence = time.Second

// forget closes the idle sessions. The network may have silently forgotten them together with one that did
// not answer, and each would cost a holder a look, 2 s: newcomers wait 12 s for it.
func (s *Store) forget() {
	if s.idle > 0 {
		s.db.SetMaxIdleConns(0)
		s.db.SetMaxIdleConns(s.idle)
	}
}

// use makes a call on a session, if no transaction is open before and after.
func (s *Store) use(conn *sql.Conn, do func() error) error {
	// Asking also discards earlier warnings. A pooler may hand over another client's session as late as with
	// the first statement.
	var err error
	idle := s.dialect.idle(conn)
	if !idle {
		err = fmt.Errorf("%w: %s", errUnfit, openHint)
	} else if err = do(); err == nil {
		if idle = s.dialect.idle(conn); !idle {
			err = unconfirmed(openHint)
		}
	}
	if err == nil {
		return nil
	}
	if !idle || errors.Is(err, errUnfit) || errors.Is(err, errReplaced) || s.moved(err) {
		discard(conn)
	}
	if errors.Is(err, errReplaced) {
		// Sessions that connect after this look have this file open, or will find another one at the path.
		now := openedFile(s.file.Load().path)
		if now != nil && s.db.Stats().OpenConnections == 0 { // none has the old file any more
			s.file.Store(now)
		}
	}
	return err
}

// moved reports whether an error is a server's own, and no lost race: the name may lead to another server by
// now, while the session stays with this one. A holder would go on asking it, as a member of a cluster that
// lost its quorum, while newcomers ask the other and find its slot free.
func (s *Store) moved(err error) bool {
	_, kind := s.dialect.classify(err)
	return !s.dialect.embedded && codeOf(err) != "" && !errors.Is(kind, store.ErrConflict)
}

// maxConnect bounds how long connecting may take, by the drivers that look at their context.
const maxConnect = 20 * time.Second

// session returns a free session, or connects. Leave must be called when the session is not used any more.
//
// Over a network, connecting may take longer than the call that needs it: a holder's look has 2 s, and a
// name server that is silent, a lost address before a good one, or a slow login take 5 s each. Then no call
// of a holder would ever succeed, while those of a newcomer, which have more time, do. So one attempt of
// the store, no matter whose, continues when its call has ended, and a later call finds the session. Not
// more: each keeps a connection, and looks that fail over a server that hangs would soon have used up all.
func (s *Store) session(ctx context.Context) (conn *sql.Conn, leave func(), err error) {
	left, err := s.lanes.Enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	release := func(a attempt) {
		if a.late != nil { // it keeps a connection, which calls of holders must not find taken
			go func() { <-a.late; left() }()
			return
		}
		if a.err == nil {
			_ = a.conn.Close() // back to the pool, unless it is bad
		}
		left()
	}
	var a attempt
	select {
	case s.patient <- struct{}{}:
		got := make(chan attempt, 1)
		go func() {
			connecting, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxConnect)
			defer cancel()
			a := s.connect(connecting)
			<-s.patient
			got <- a
		}()
		select {
		case a = <-got:
		case <-ctx.Done():
			go func() { release(<-got) }()
			return nil, nil, ctx.Err()
		}
	default:
		a = s.connect(ctx)
	}
	if a.err != nil {
		release(a)
	}
	return a.conn, func() { release(a) }, a.err
}

// An attempt is how connecting ended.
type attempt struct {
	conn *sql.Conn
	err  error
	late <-chan struct{} // not nil: it was abandoned, and is closed once it has ended
}

func (s *Store) connect(ctx context.Context) attempt {
	got := make(chan attempt, 1)
	call := func() {
		var a attempt
		defer func() { got <- a }()
		defer backend.Rescue(&a.err)
		a.conn, a.err = s.db.Conn(ctx)
	}
	if s.dialect.embedded {
		call()
	} else {
		go call()
	}
	a, ok := await(ctx, got)
	if ok {
		return a
	}
	late := make(chan struct{})
	go func() {
		defer close(late)
		if a := <-got; a.err == nil {
			_ = a.conn.Close() // to the pool
		}
	}()
	return attempt{err: ctx.Err(), late: late}
}

// discard closes a session, which otherwise returns to the pool.
func discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// Another session may have made the table, and committed that, some milliseconds before this session sees it. On a busy
// server, this lasts until the other one is scheduled again.
const makeTries, makePause = 100, 20 * time.Millisecond

// makeTable makes the missing table.
func (s *Store) makeTable(ctx context.Context, conn *sql.Conn) (struct{}, error) {
	if s.dialect.meant != nil {
		if err := s.dialect.meant(ctx, s, conn); err != nil {
			return struct{}{}, err
		}
	}
	var makeErr, err error
	for range makeTries {
		_, makeErr = conn.ExecContext(ctx, s.dialect.create)
		// A table with other columns looked missing too. Making it may fail if others do at the same moment.
		if _, err = s.registers(ctx, conn, s.dialect.probe); err == nil || makeErr == nil {
			return struct{}{}, err
		}
		if !slices.Contains(strings.Fields(s.dialect.made), codeOf(makeErr)) {
			break
		}
		select {
		case <-time.After(makePause):
		case <-ctx.Done():
		}
	}
	if makeErr = fmt.Errorf("make it: %w", makeErr); codeOf(err) != s.dialect.missing {
		makeErr = fmt.Errorf("%w (and: %w)", makeErr, err)
	}
	var account string
	if hint, kind := s.dialect.classify(makeErr); !errors.Is(kind, store.ErrRefused) || hint == readOnlyHint || hint == primaryHint || s.dialect.account == "" ||
		each(ctx, conn, func(rows *sql.Rows) error { return rows.Scan(&account) }, s.dialect.account) != nil {
		return struct{}{}, makeErr
	}
	return struct{}{}, &deniedError{makeErr, "if this account may not create tables, run as one that may:\n" + s.dialect.create + ";\n" + s.dialect.grant + account + ";"}
}

// A deniedError is why the table could not be made, with the statements to run as another account.
type deniedError struct {
	error
	hint string
}

func (e *deniedError) Unwrap() error { return e.error }

// wrap adds to an error its place, its kind, and the end of ctx, which each driver reports differently.
func (s *Store) wrap(ctx context.Context, op, key string, err error) error {
	hint, kind := s.dialect.classify(err)
	var denied *deniedError
	if errors.As(err, &denied) {
		hint = denied.hint
	}
	ended := store.ContextError(ctx)
	if kind == nil && ended == nil && codeOf(err) == "" { // a time-out of its own, as of a name server
		kind = store.ErrUnavailable
	}
	switch {
	case ended == nil, store.Unapplied(kind): // certain, whatever ctx says
	case errors.Is(ended, err):
		err = ended
	case !errors.Is(ended, ctx.Err()): // the caller's context lasts, and the driver's error must not say that it has ended
		err = fmt.Errorf("%w: %w", ended, &store.TextError{Err: err})
	default:
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if errors.Is(kind, store.ErrConflict) && op != "compare-and-swap" {
		kind = store.ErrUnavailable
	}
	if op == opOpen && kind == nil && ended == nil {
		hint = "is " + s.dialect.name + " the dialect of the driver's database?"
	}
	return backend.Wrap("sqlstore", op, key, err, hint, kind)
}
