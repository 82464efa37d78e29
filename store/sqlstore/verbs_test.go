package sqlstore_test

import (
	"context"
	"database/sql"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// The package has the verbs of docs/decisions/0011.
var (
	_ func(context.Context, *sql.DB, sqlstore.Dialect) (*sqlstore.Store, error) = sqlstore.Open
	_ func(context.Context, *sql.DB, sqlstore.Dialect) (*sqlstore.Store, error) = sqlstore.Create
	_ store.Store                                                               = (*sqlstore.Store)(nil)
)
