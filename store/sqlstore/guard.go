package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/firn-id/firn/store/backend"
)

// Guarded returns a connector whose connections return an error, [store.ErrUnavailable], where the driver panics,
// and are not used again. Drivers panic over malformed answers: go-sql-driver/mysql over short packets. Without
// this connector the store returns an error too, but database/sql never gets that connection back, and connects
// in goroutines of its own, where a panic ends the process.
//
//	db := sql.OpenDB(sqlstore.Guarded(connector, nil))
//
// Functions that look at the driver's connection, as that of [Dialect.WithSession], get it as it is. Explain, if
// it is not nil, gets each error of the driver, and may return another that says more.
func Guarded(c driver.Connector, explain func(error) error) driver.Connector {
	if explain == nil {
		explain = func(err error) error { return err }
	}
	return guardedConnector{c, explain}
}

type guardedConnector struct {
	driver.Connector
	explain func(error) error
}

// Connect implements [driver.Connector].
func (g guardedConnector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	defer backend.Rescue(&err)
	c, err := g.Connector.Connect(ctx)
	if err != nil {
		return nil, g.explain(err)
	}
	return &guardedConn{Conn: c, explain: g.explain}, nil
}

// A guardedConn has the methods that drivers may have; where the driver's connection lacks a method, it returns what
// database/sql would assume without it.
type guardedConn struct {
	driver.Conn
	explain func(error) error
	broken  bool // the driver panicked
}

// rescue, when it is deferred, turns a panic into an error, and explains another.
func (g *guardedConn) rescue(err *error) {
	if r := recover(); r != nil {
		g.broken = true
		*err = backend.Panicked(r)
	} else if *err != nil && !errors.Is(*err, io.EOF) && !errors.Is(*err, driver.ErrSkip) { // database/sql compares with these
		*err = g.explain(*err)
	}
}

// unwrap returns the driver's own connection.
func unwrap(driverConn any) any {
	if g, ok := driverConn.(*guardedConn); ok {
		return g.Conn
	}
	return driverConn
}

// IsValid implements [driver.Validator].
func (g *guardedConn) IsValid() bool {
	v, ok := g.Conn.(driver.Validator)
	return !g.broken && (!ok || v.IsValid())
}

// ResetSession implements [driver.SessionResetter].
func (g *guardedConn) ResetSession(ctx context.Context) (err error) {
	defer g.rescue(&err)
	if r, ok := g.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// Ping implements [driver.Pinger].
func (g *guardedConn) Ping(ctx context.Context) (err error) {
	defer g.rescue(&err)
	if p, ok := g.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (g *guardedConn) CheckNamedValue(v *driver.NamedValue) error {
	if c, ok := g.Conn.(driver.NamedValueChecker); ok {
		return c.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// ExecContext implements [driver.ExecerContext].
func (g *guardedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	defer g.rescue(&err)
	if e, ok := g.Conn.(driver.ExecerContext); ok {
		return e.ExecContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

// QueryContext implements [driver.QueryerContext].
func (g *guardedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	defer g.rescue(&err)
	q, ok := g.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	r, err := q.QueryContext(ctx, query, args)
	return g.guard(r, err)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (g *guardedConn) PrepareContext(ctx context.Context, query string) (stmt driver.Stmt, err error) {
	defer g.rescue(&err)
	p, ok := g.Conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, errNoContext
	}
	s, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &guardedStmt{s, g}, nil
}

// BeginTx implements [driver.ConnBeginTx].
func (g *guardedConn) BeginTx(ctx context.Context, options driver.TxOptions) (tx driver.Tx, err error) {
	defer g.rescue(&err)
	b, ok := g.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, errNoContext
	}
	t, err := b.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &guardedTx{t, g}, nil
}

// Close implements [driver.Conn].
func (g *guardedConn) Close() (err error) {
	defer g.rescue(&err)
	return g.Conn.Close()
}

// errNoContext is for drivers that lack methods which all that Firn knows have.
var errNoContext = errors.New("the driver's connections take no contexts: open the database without sqlstore.Guarded")

type guardedTx struct {
	driver.Tx
	conn *guardedConn
}

// Commit implements [driver.Tx].
func (t *guardedTx) Commit() (err error) {
	defer t.conn.rescue(&err)
	return t.Tx.Commit()
}

// Rollback implements [driver.Tx].
func (t *guardedTx) Rollback() (err error) {
	defer t.conn.rescue(&err)
	return t.Tx.Rollback()
}

type guardedStmt struct {
	driver.Stmt
	conn *guardedConn
}

// ExecContext implements [driver.StmtExecContext].
func (s *guardedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (result driver.Result, err error) {
	defer s.conn.rescue(&err)
	e, ok := s.Stmt.(driver.StmtExecContext)
	if !ok {
		return nil, errNoContext
	}
	return e.ExecContext(ctx, args)
}

// QueryContext implements [driver.StmtQueryContext].
func (s *guardedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	defer s.conn.rescue(&err)
	q, ok := s.Stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, errNoContext
	}
	r, err := q.QueryContext(ctx, args)
	return s.conn.guard(r, err)
}

// Close implements [driver.Stmt].
func (s *guardedStmt) Close() (err error) {
	defer s.conn.rescue(&err)
	return s.Stmt.Close()
}

type guardedRows struct {
	driver.Rows
	conn *guardedConn
}

func (g *guardedConn) guard(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	return &guardedRows{rows, g}, nil
}

// Next implements [driver.Rows].
func (r *guardedRows) Next(dest []driver.Value) (err error) {
	defer r.conn.rescue(&err)
	return r.Rows.Next(dest)
}

// Close implements [driver.Rows].
func (r *guardedRows) Close() (err error) {
	defer r.conn.rescue(&err)
	return r.Rows.Close()
}

// ColumnTypeDatabaseTypeName implements [driver.RowsColumnTypeDatabaseTypeName].
func (r *guardedRows) ColumnTypeDatabaseTypeName(i int) string {
	if t, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}
