// Package foreign reads tables that another system made in a MySQL or MariaDB, and checks everything
// that it reads.
package foreign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

const (
	// maxRows bounds the rows read into memory: as many as segments may have namespaces.
	maxRows = 1 << 20
	// maxMistakes bounds how many mistakes an error names.
	maxMistakes = 20
	// unlimited makes a query return all rows, whatever sql_select_limit is.
	unlimited = " LIMIT 18446744073709551615"
)

// check returns an error unless the current database has the table with these columns. Names are
// case-insensitive.
func check(ctx context.Context, db *sql.DB, table string, columns []string) error {
	var database sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return err
	}
	have := map[string]bool{}
	err := each(ctx, db, "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?"+unlimited,
		[]any{table}, func(cells []sql.NullString) { have[strings.ToLower(cells[0].String)] = true })
	if err != nil {
		return err
	}
	if len(have) == 0 {
		return fmt.Errorf("database %q has no table %s that this user may read: name the database that has it, or grant SELECT on it",
			database.String, table)
	}
	var missing []string
	for _, column := range columns {
		if !have[column] {
			missing = append(missing, column)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("table %s of database %q has no column %s: it is a different table with that name, or of an unknown version",
			table, database.String, strings.Join(missing, ", "))
	}
	return nil
}

// A Row is a row as text. Its methods take the index of a column in the query, and collect errors.
type Row struct {
	cells   []sql.NullString
	columns []string
	named   string
	errs    []error
}

// List calls read for the rows of a system's table, sorted by the column order, and returns the
// results for which ok is true. The error names all missing columns, or all mistakes in the rows.
func List[T any](ctx context.Context, db *sql.DB, system, table, order string, columns []string, read func(r *Row) (made T, ok bool)) ([]T, error) {
	var list []T
	err := check(ctx, db, table, columns)
	if err == nil {
		err = rows(ctx, db, table, columns, "ORDER BY "+order+unlimited, nil, func(r *Row) {
			if made, ok := read(r); ok {
				list = append(list, made)
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", system, err)
	}
	return list, nil
}

// A querier is a database, or a transaction in one.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// rows calls read with the rows of table that a clause selects, and returns the errors that the rows
// collected.
func rows(ctx context.Context, db querier, table string, columns []string, clause string, args []any, read func(r *Row)) error {
	var errs []error
	mistakes, number := 0, 0
	query := "SELECT " + strings.Join(columns, ", ") + " FROM " + table + " " + clause
	err := each(ctx, db, query, args, func(cells []sql.NullString) {
		number++
		r := Row{cells: cells, columns: columns}
		read(&r)
		for _, err := range r.errs {
			if mistakes++; mistakes <= maxMistakes {
				errs = append(errs, fmt.Errorf("table %s, row %s: %w", table, r.name(number), err))
			}
		}
	})
	if mistakes > maxMistakes {
		errs = append(errs, fmt.Errorf("and %d more", mistakes-maxMistakes))
	}
	return errors.Join(append(errs, err)...)
}

// each reads all rows as text, since drivers differ in the types they return.
func each(ctx context.Context, db querier, query string, args []any, read func(cells []sql.NullString)) (err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	cells := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range cells {
		into[i] = &cells[i]
	}
	for n := 0; rows.Next(); n++ {
		if n == maxRows {
			return fmt.Errorf("there are more than %d rows, the limit", maxRows)
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		read(cells)
	}
	return rows.Err()
}

// Name makes errors of this row begin with the text of column i.
func (r *Row) Name(i int) string {
	r.named = r.Text(i)
	return r.named
}

func (r *Row) name(number int) string {
	if r.named == "" {
		return strconv.Itoa(number)
	}
	return strconv.Quote(r.named)
}

// Text returns column i, which must not be NULL.
func (r *Row) Text(i int) string {
	if !r.cells[i].Valid {
		r.errs = append(r.errs, fmt.Errorf("%s is NULL: give it a value", r.columns[i]))
	}
	return r.cells[i].String
}

// Optional returns column i, or "" if it is NULL.
func (r *Row) Optional(i int) string { return r.cells[i].String }

// Whole returns column i, which must be a whole number from least to most.
func (r *Row) Whole(i int, least, most int64) int64 {
	text := r.Text(i)
	if !r.cells[i].Valid {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (n < least || n > most):
		r.errs = append(r.errs, &firn.RangeError{What: r.columns[i], Value: text, Min: strconv.FormatInt(least, 10), Max: strconv.FormatInt(most, 10)})
	case err != nil:
		r.errs = append(r.errs, firn.NewSyntaxError("whole number", text, r.columns[i]+" must be a whole number"))
	default:
		return n
	}
	return 0
}
